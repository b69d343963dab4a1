//! Which server this is, where that changes what we may do. Found out at load.

use redis_module::ContextFlags;

use crate::server::sys::{self, Ctx, ServerInfo, Text};

/// How a granted client is woken (see `outbound::answers`).
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

/// When a message may be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// Until 7.0.9 a connection that is in CLIENT REPLY SKIP does not get it either: when
    /// the loop's turn ends.
    AtTurnsEnd,
    /// Redis 7.0 writes it into the middle of what EXEC replies: only in a command that
    /// stands alone.
    OutsideExec,
    /// Newer servers write it behind the reply.
    Always,
}

/// Does not change while the module is loaded.
pub struct ServerProfile {
    pub valkey: bool,
    pub wakeup: Wakeup,
    pub publishing: Publishing,
    /// In its cycle Redis 8 deletes a key once the ms of its end has begun. Before and
    /// elsewhere it lives through that ms.
    pub ends_early: bool,
    pub cluster: bool,
    /// The uuid of this load of the module, for the owner `*`.
    pub uuid: String,
    /// The strings `0`, `1` and `PXAT`, made once.
    pub zero: Text<'static>,
    pub one: Text<'static>,
    pub pxat: Text<'static>,
    /// What RESTORE is sent with.
    pub replace: Text<'static>,
    pub absttl: Text<'static>,
}

impl ServerProfile {
    /// `None`: the server gives us no memory.
    pub fn detect(ctx: Ctx<'_>) -> Option<Self> {
        let valkey = is_valkey(ctx);
        let wakeup = match sys::version() {
            _ if valkey => Wakeup::AtOnce,
            ..0x0007_0200 => Wakeup::BeforeSleep,
            0x0007_0200..0x0007_0400 => Wakeup::ByTimer,
            _ => Wakeup::AtOnce,
        };
        let publishing = match sys::version() {
            ..0x0007_000a if !valkey => Publishing::AtTurnsEnd,
            ..0x0007_0200 if !valkey => Publishing::OutsideExec,
            _ => Publishing::Always,
        };
        let cluster = ctx.flags().contains(ContextFlags::CLUSTER);
        Some(Self {
            valkey,
            wakeup,
            publishing,
            ends_early: !valkey && sys::version() >= 0x0007_0400,
            cluster,
            uuid: uuid::Uuid::new_v4().to_string(),
            zero: Text::new(b"0")?,
            one: Text::new(b"1")?,
            pxat: Text::new(b"PXAT")?,
            replace: Text::new(b"REPLACE")?,
            absttl: Text::new(b"ABSTTL")?,
        })
    }
}

/// Redis 8.0 and Valkey 8.0 give the same version number; INFO says which one it is.
fn is_valkey(ctx: Ctx<'_>) -> bool {
    let info = ServerInfo::section(ctx, c"server");
    info.is_some_and(|info| info.text(c"server_name") == Some("valkey"))
}
