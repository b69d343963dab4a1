//! Loading and unloading.

use redis_module::{raw, Context, RedisString, Status};

use super::ffi::{api, has, Ctx};
use super::shell;
use super::version::Server;
use super::{alone, events, info_section, pending, records, replication, surroundings};
use crate::config;

/// What rlock cannot do without; all of it is in Redis 7.0.
fn missing_function() -> Option<&'static str> {
    macro_rules! first_missing {
        ($($name:ident),* $(,)?) => {
            [$((has!($name), stringify!($name))),*]
                .into_iter()
                .find_map(|(there, name)| (!there).then_some(name))
        };
    }
    first_missing!(
        RedisModule_CreateCommand,
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

/// Checks the server, then sets up the module's state and subscriptions.
/// `commands` registers the commands.
pub fn load(context: &Context, args: &[RedisString], commands: fn(Ctx) -> bool) -> Status {
    let ctx = Ctx(context.get_raw());
    let args: Vec<&[u8]> = args.iter().map(RedisString::as_slice).collect();
    if let Err(wrong) = config::check(&args) {
        ctx.warn(&format!("rlock: {wrong}"));
        return Status::Err;
    }
    if let Some(name) = missing_function() {
        ctx.warn(&format!(
            "rlock: this server lacks {name}; rlock needs Redis 7.0 or Valkey 8.0, or newer"
        ));
        return Status::Err;
    }
    if let Some(command) = replication::missing_command(ctx) {
        ctx.warn(&format!(
            "rlock: the command {command:?}, which rlock relies on, is renamed or disabled; \
             restore it, or restrict it by ACL instead"
        ));
        return Status::Err;
    }
    if replication::is_missing(ctx, c"PUBSUB") {
        ctx.warn(
            "rlock: PUBSUB is renamed or disabled: those who wait by subscription, as \
             Redisson does, have no turn among native waiters",
        );
    }
    let server = Server::detect(ctx);
    let Some(shell) = shell::install(server, records::has_replicas(ctx)) else {
        return Status::Err;
    };
    let master = ctx.flags() & raw::REDISMODULE_CTX_FLAGS_MASTER as i32;
    shell.listening.set(master != 0);
    alone::look(shell, ctx);
    if !commands(ctx) || !events::subscribe(ctx) {
        ctx.warn("rlock: the server refused a command or an event");
        return Status::Err;
    }
    set_options(ctx, server);
    info_section::register(ctx);
    surroundings::watch(ctx);
    ctx.notice(&format!(
        "rlock {} on {}: ready; owner * is {}:<client id>",
        env!("CARGO_PKG_VERSION"),
        if server.valkey { "Valkey" } else { "Redis" },
        shell.uuid
    ));
    Status::Ok
}

/// Valkey 9 moves slots atomically only if every module says that it copes. Not
/// in the bindings, which are Redis'.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// Declares what the module copes with.
fn set_options(ctx: Ctx, server: Server) {
    // Writes are announced to WATCH by hand: a refused try is none. Loading a
    // data set beside the old one is fine, and is looked at again when it ends.
    let mut options = raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    if server.valkey {
        options |= HANDLE_ATOMIC_SLOT_MIGRATION;
    }
    api!(RedisModule_SetModuleOptions(ctx.0, options as i32));
}

/// The server asks only when no client waits and no timer is armed, that is when
/// no lease runs.
pub fn unload(context: &Context) -> Status {
    let ctx = Ctx(context.get_raw());
    if let Some(why) = shell::shell().and_then(|shell| pending::forbids_unload(shell, ctx)) {
        ctx.warn(&format!("rlock: not unloaded: {why}"));
        return Status::Err;
    }
    shell::uninstall();
    Status::Ok
}
