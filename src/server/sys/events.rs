//! Events that the server sends: of keys, and of itself.

use std::ffi::{c_char, c_int, c_void, CStr};

use redis_module::{raw, NotifyEvent};

use super::api::{api, OK};
use super::ctx::Ctx;
use super::guard::callback;
use super::text::bytes_of;
use crate::lock::ClientId;

/// Who gets key events.
pub trait OnKey {
    /// What it is called in the log, should it fail.
    const WHAT: &'static str;

    /// In the database that is selected.
    fn on_key(ctx: Ctx<'_>, event: &[u8], name: &[u8]);
}

/// Subscribes to key events. `false`: the server refused.
pub fn subscribe_keys<H: OnKey>(ctx: Ctx<'_>, classes: NotifyEvent) -> bool {
    api!(RedisModule_SubscribeToKeyspaceEvents).is_some_and(|call| {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr(), classes.bits(), Some(on_key::<H>)) == OK }
    })
}

/// Ends a subscription to exactly these classes (Redis 8.2). `false`: it goes on.
pub fn unsubscribe_keys<H: OnKey>(ctx: Ctx<'_>, classes: NotifyEvent) -> bool {
    api!(RedisModule_UnsubscribeFromKeyspaceEvents).is_some_and(|call| {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr(), classes.bits(), Some(on_key::<H>)) == OK }
    })
}

/// # Safety
/// For the server: `event` is a C string.
unsafe extern "C" fn on_key<H: OnKey>(
    ctx: *mut raw::RedisModuleCtx,
    _class: c_int,
    event: *const c_char,
    name: *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: it lives until the callback returns.
    let event = unsafe { CStr::from_ptr(event) }.to_bytes();
    // SAFETY: as above.
    let name = unsafe { bytes_of(name) };
    // SAFETY: the server passes it to this callback.
    unsafe { callback(ctx, H::WHAT, |ctx| H::on_key(ctx, event, name)) };
    OK
}

/// An event of the server that can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ServerEvent {
    Role = raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
    Save = raw::REDISMODULE_EVENT_PERSISTENCE,
    Flush = raw::REDISMODULE_EVENT_FLUSHDB,
    Loading = raw::REDISMODULE_EVENT_LOADING,
    Client = raw::REDISMODULE_EVENT_CLIENT_CHANGE,
    Replica = raw::REDISMODULE_EVENT_REPLICA_CHANGE,
    Cron = raw::REDISMODULE_EVENT_CRON_LOOP,
    Module = raw::REDISMODULE_EVENT_MODULE_CHANGE,
    SwapDb = raw::REDISMODULE_EVENT_SWAPDB,
    Fork = raw::REDISMODULE_EVENT_FORK_CHILD,
    EventLoop = raw::REDISMODULE_EVENT_EVENTLOOP,
    Config = raw::REDISMODULE_EVENT_CONFIG,
    Key = raw::REDISMODULE_EVENT_KEY,
}

/// What an event of the server says.
pub enum EventData<'a> {
    /// This server is a master now, or a replica.
    Role { master: bool },
    /// A data set is saved, or was.
    Saved,
    /// A database was emptied; `None`: all were.
    Flushed { db: Option<i32> },
    /// A data set is loaded, or was: the load is over, well or not.
    Loading { over: bool },
    /// This client's connection closes.
    Closed(ClientId),
    /// A replica came or went, or a child was forked or ended.
    Replicas,
    /// The cron runs, so many times a second.
    Cron { hz: i32 },
    /// A module came or goes.
    Modules,
    /// Two databases were exchanged.
    Swapped(i32, i32),
    /// The event loop is about to sleep, or has slept.
    EventLoop { slept: bool },
    /// Settings were changed.
    Settings(Vec<&'a [u8]>),
    /// This key, in the database that is selected, is about to be overwritten.
    Overwritten(&'a [u8]),
}

/// Who gets events of the server.
pub trait OnServerEvent {
    fn on_event(ctx: Ctx<'_>, event: EventData<'_>);
}

/// Subscribes to an event. `false`: the server refused.
pub fn subscribe<L: OnServerEvent>(ctx: Ctx<'_>, event: ServerEvent) -> bool {
    set(ctx, event, Some(on_event::<L>))
}

/// Ends that.
pub fn unsubscribe(ctx: Ctx<'_>, event: ServerEvent) {
    set(ctx, event, None);
}

fn set(ctx: Ctx<'_>, event: ServerEvent, callback: raw::RedisModuleEventCallback) -> bool {
    let event = raw::RedisModuleEvent {
        id: event as u64,
        dataver: 1,
    };
    api!(RedisModule_SubscribeToServerEvent).is_some_and(|call| {
        // SAFETY: the context is valid; the callback takes what this version of the event
        // passes.
        unsafe { call(ctx.as_ptr(), event, callback) == OK }
    })
}

/// # Safety
/// For the server: `data` is what it passes with this event.
unsafe extern "C" fn on_event<L: OnServerEvent>(
    ctx: *mut raw::RedisModuleCtx,
    event: raw::RedisModuleEvent,
    part: u64,
    data: *mut c_void,
) {
    // SAFETY: as the caller says, and it lives until this returns.
    let Some(event) = (unsafe { read(event.id, part, data) }) else {
        return;
    };
    // SAFETY: the server passes it to this callback.
    unsafe { callback(ctx, "an event of the server", |ctx| L::on_event(ctx, event)) };
}

/// What an event says, if it is of interest.
///
/// # Safety
/// `data` is what the server passes with this event, and lives for `'a`.
unsafe fn read<'a>(event: u64, part: u64, data: *mut c_void) -> Option<EventData<'a>> {
    use raw::*;
    Some(match event {
        REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED => EventData::Role {
            master: part != REDISMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA,
        },
        REDISMODULE_EVENT_PERSISTENCE => EventData::Saved,
        REDISMODULE_EVENT_FLUSHDB if part == REDISMODULE_SUBEVENT_FLUSHDB_END => {
            // SAFETY: this event passes this structure.
            let info = unsafe { data.cast::<RedisModuleFlushInfoV1>().as_ref() };
            EventData::Flushed {
                db: info.map(|info| info.dbnum).filter(|db| *db >= 0),
            }
        }
        REDISMODULE_EVENT_LOADING => EventData::Loading {
            over: matches!(
                part,
                REDISMODULE_SUBEVENT_LOADING_ENDED | REDISMODULE_SUBEVENT_LOADING_FAILED
            ),
        },
        REDISMODULE_EVENT_CLIENT_CHANGE
            if part == REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED =>
        {
            // SAFETY: this event passes this structure.
            let info = unsafe { data.cast::<RedisModuleClientInfo>().as_ref() }?;
            EventData::Closed(ClientId::new(info.id)?)
        }
        REDISMODULE_EVENT_REPLICA_CHANGE | REDISMODULE_EVENT_FORK_CHILD => EventData::Replicas,
        REDISMODULE_EVENT_CRON_LOOP => {
            // SAFETY: this event passes this structure.
            let info = unsafe { data.cast::<RedisModuleCronLoopInfo>().as_ref() };
            EventData::Cron {
                hz: info.map_or(0, |info| info.hz),
            }
        }
        REDISMODULE_EVENT_MODULE_CHANGE => EventData::Modules,
        REDISMODULE_EVENT_SWAPDB => {
            // SAFETY: this event passes this structure.
            let info = unsafe { data.cast::<RedisModuleSwapDbInfo>().as_ref() }?;
            EventData::Swapped(info.dbnum_first, info.dbnum_second)
        }
        REDISMODULE_EVENT_EVENTLOOP => EventData::EventLoop {
            slept: part == REDISMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP,
        },
        REDISMODULE_EVENT_CONFIG => {
            // SAFETY: this event passes this structure, which lives as `data` does.
            EventData::Settings(unsafe { names(data) })
        }
        REDISMODULE_EVENT_KEY if part == REDISMODULE_SUBEVENT_KEY_OVERWRITTEN => {
            // SAFETY: this event passes this structure, whose key is open meanwhile.
            EventData::Overwritten(unsafe { name_of(data) }?)
        }
        _ => return None,
    })
}

/// The settings that were changed.
///
/// # Safety
/// `data` is null or a `RedisModuleConfigChange` that lives for `'a`.
unsafe fn names<'a>(data: *mut c_void) -> Vec<&'a [u8]> {
    // SAFETY: as the caller says.
    let change = unsafe { data.cast::<raw::RedisModuleConfigChangeV1>().as_ref() };
    let Some(change) = change.filter(|change| !change.config_names.is_null()) else {
        return Vec::new();
    };
    let len = usize::try_from(change.num_changes).unwrap_or(0);
    // SAFETY: so many names stand there until the callback returns.
    let names = unsafe { std::slice::from_raw_parts(change.config_names, len) };
    let there = names.iter().filter(|name| !name.is_null());
    // SAFETY: C strings, which live as long.
    there
        .map(|name| unsafe { CStr::from_ptr(*name) }.to_bytes())
        .collect()
}

/// The name of the key that an event is of.
///
/// # Safety
/// `data` is null or a `RedisModuleKeyInfo` that lives for `'a`.
unsafe fn name_of<'a>(data: *mut c_void) -> Option<&'a [u8]> {
    // SAFETY: as the caller says.
    let info = unsafe { data.cast::<raw::RedisModuleKeyInfoV1>().as_ref() }?;
    let call = api!(RedisModule_GetKeyNameFromModuleKey)?;
    // SAFETY: the server has opened the key for the callback.
    let name = unsafe { call(info.key) };
    if name.is_null() {
        return None;
    }
    // SAFETY: the server keeps the name until the callback returns.
    Some(unsafe { bytes_of(name) })
}
