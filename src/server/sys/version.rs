//! What this server's API has, and what the module declares about itself.

use std::ffi::c_int;

use redis_module::raw::ModuleOptions;

use super::api::{api, OK};
use super::ctx::Ctx;

/// What rlock cannot do without and this server lacks; all of it is in Redis 7.0.
pub fn missing_function() -> Option<&'static str> {
    macro_rules! first_missing {
        ($($name:ident),* $(,)?) => {
            [$((api!($name).is_some(), stringify!($name))),*]
                .into_iter()
                .find_map(|(there, name)| (!there).then_some(name))
        };
    }
    first_missing!(
        RedisModule_CreateCommand,
        RedisModule_LoadConfigs,
        RedisModule_SetCommandInfo,
        RedisModule_OpenKey,
        RedisModule_CloseKey,
        RedisModule_KeyType,
        RedisModule_ValueLength,
        RedisModule_DeleteKey,
        RedisModule_HashSet,
        RedisModule_HashGet,
        RedisModule_StringSet,
        RedisModule_StringDMA,
        RedisModule_GetAbsExpire,
        RedisModule_SetAbsExpire,
        RedisModule_ScanKey,
        RedisModule_Replicate,
        RedisModule_Call,
        RedisModule_SignalModifiedKey,
        RedisModule_NotifyKeyspaceEvent,
        RedisModule_PublishMessage,
        RedisModule_SubscribeToKeyspaceEvents,
        RedisModule_SubscribeToServerEvent,
        RedisModule_BlockClientOnKeys,
        RedisModule_UnblockClient,
        RedisModule_DeauthenticateAndCloseClient,
        RedisModule_GetClientInfoById,
        RedisModule_ReplyWithSimpleString,
        RedisModule_SetDisconnectCallback,
        RedisModule_GetBlockedClientPrivateData,
        RedisModule_BlockedClientDisconnected,
        RedisModule_CreateTimer,
        RedisModule_StopTimer,
        RedisModule_EventLoopAddOneShot,
        RedisModule_AvoidReplicaTraffic,
        RedisModule_GetContextFlags,
        RedisModule_SelectDb,
        RedisModule_GetSelectedDb,
    )
}

/// The server's version, 0x00MMmmpp.
pub fn version() -> i32 {
    api!(RedisModule_GetServerVersion).map_or(0, |call| {
        // SAFETY: it takes nothing.
        unsafe { call() }
    })
}

/// Valkey 9 moves slots atomically only if every module says that it copes. Not in the
/// bindings, which are Redis'.
const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// Declares what the module copes with.
pub fn set_options(ctx: Ctx<'_>, valkey: bool) {
    // Writes are announced to WATCH by hand: a refused try is none. Loading a data set
    // while the old one is in use is fine, and is looked at again when it ends.
    let mut options =
        ModuleOptions::NO_IMPLICIT_SIGNAL_MODIFIED | ModuleOptions::HANDLE_REPL_ASYNC_LOAD;
    if valkey {
        options |= ModuleOptions::from_bits_retain(HANDLE_ATOMIC_SLOT_MIGRATION);
    }
    ctx.context().set_module_options(options);
}

/// The settings that are registered become what redis.conf says, or else their defaults.
/// `false`: one is not allowed, and the server's log says which.
pub fn take_settings(ctx: Ctx<'_>) -> bool {
    api!(RedisModule_LoadConfigs).is_some_and(|call| {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr()) == OK }
    })
}
