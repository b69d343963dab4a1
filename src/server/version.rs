//! Which server this is, where that changes what we may do.

use redis_module::raw;

use super::ffi::{api, has, Ctx};

/// How a granted client is woken (see `blocking`).
///
/// Redis 7.0 and 7.2 write the reply into the client's own buffer during
/// RM_UnblockClient, while the client still counts as blocked. So that nothing can
/// come between, that call is left until right before the server looks for clients
/// to unblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// Redis 7.0 looks right after the event that it is about to sleep.
    BeforeSleep,
    /// Redis 7.2 looks right after the timers have run.
    ByTimer,
    /// Redis 7.4 and newer, and Valkey, hold the reply back until they unblock
    /// the client: there is nothing to wait for.
    AtOnce,
}

#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub valkey: bool,
    pub wakeup: Wakeup,
    pub cluster: bool,
    /// The server runs jobs after a command that made a key event (7.2).
    pub jobs: bool,
}

impl Server {
    pub fn detect(ctx: Ctx) -> Self {
        let valkey = is_valkey(ctx);
        // 0x00MMmmpp
        let version = api!(RedisModule_GetServerVersion()).unwrap_or(0);
        let wakeup = match version {
            _ if valkey => Wakeup::AtOnce,
            ..0x0007_0200 => Wakeup::BeforeSleep,
            0x0007_0200..0x0007_0400 => Wakeup::ByTimer,
            _ => Wakeup::AtOnce,
        };
        Self {
            valkey,
            wakeup,
            cluster: ctx.flags() & raw::REDISMODULE_CTX_FLAGS_CLUSTER as i32 != 0,
            jobs: has!(RedisModule_AddPostNotificationJob),
        }
    }
}

/// Redis 8.0 and Valkey 8.0 give the same version number; INFO tells them apart.
fn is_valkey(ctx: Ctx) -> bool {
    let Some(info) = api!(RedisModule_GetServerInfo(ctx.0, c"server".as_ptr())) else {
        return false;
    };
    if info.is_null() {
        return false;
    }
    let field = api!(RedisModule_ServerInfoGetFieldC(
        info,
        c"server_name".as_ptr()
    ));
    let valkey = field.filter(|text| !text.is_null()).is_some_and(|text| {
        // SAFETY: the server gave a C string that lives as long as `info`.
        unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes() == b"valkey"
    });
    api!(RedisModule_FreeServerInfo(ctx.0, info));
    valkey
}
