//! Connections, also others than the one whose command runs, by their ids.

use std::ffi::CStr;

use redis_module::raw;

use super::api::{api, OK};
use super::Ctx;
use crate::lock::ClientId;

fn info(_: Ctx<'_>, client: ClientId) -> Option<raw::RedisModuleClientInfoV1> {
    let call = api!(RedisModule_GetClientInfoById)?;
    // SAFETY: a structure of numbers and characters.
    let mut info: raw::RedisModuleClientInfoV1 = unsafe { std::mem::zeroed() };
    info.version = 1;
    // SAFETY: the structure is of the version that it says.
    let status = unsafe { call((&raw mut info).cast(), client.get()) };
    (status == OK).then_some(info)
}

/// Whether a connection is there and subscribed to anything.
pub fn is_subscribed(ctx: Ctx<'_>, client: ClientId) -> bool {
    let subscribed = u64::from(raw::REDISMODULE_CLIENTINFO_FLAG_PUBSUB);
    info(ctx, client).is_some_and(|info| info.flags & subscribed != 0)
}

/// Where a connection comes from, as CLIENT LIST writes it. `None`: it is not there any
/// more.
pub fn address_of(ctx: Ctx<'_>, client: ClientId) -> Option<String> {
    let info = info(ctx, client)?;
    let bytes = info.addr.map(|byte| byte as u8);
    let host = CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy();
    Some(match host.contains(':') {
        true => format!("[{host}]:{}", info.port),
        false => format!("{host}:{}", info.port),
    })
}
