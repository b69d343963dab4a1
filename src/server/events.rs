//! What the server tells us of itself: databases that were emptied or exchanged,
//! loads, roles, replicas, clients that closed. These callbacks only record; a job
//! or the timer acts, through the gate.
//!
//! Events of clients and of the event loop are subscribed to while anybody waits or
//! a hold belongs to a connection, for they cost something each time.

use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::alone;
use super::blocking;
use super::closing;
use super::ffi::{api, guarded, Ctx};
use super::notes::{leave, After};
use super::pulse;
use super::records;
use super::shell::{shell, Shell};
use super::version::Wakeup;
use crate::lock::{Cause, Note};

/// Subscribes to what is rare, at load. `false`: the server refused.
pub fn subscribe(ctx: Ctx) -> bool {
    let events: [(u64, raw::RedisModuleEventCallback); 9] = [
        (raw::REDISMODULE_EVENT_FLUSHDB, Some(on_flush)),
        (raw::REDISMODULE_EVENT_SWAPDB, Some(on_swap)),
        (raw::REDISMODULE_EVENT_LOADING, Some(on_loading)),
        (raw::REDISMODULE_EVENT_REPLICA_CHANGE, Some(on_replica)),
        (raw::REDISMODULE_EVENT_FORK_CHILD, Some(on_replica)),
        (raw::REDISMODULE_EVENT_PERSISTENCE, Some(on_save)),
        (raw::REDISMODULE_EVENT_MODULE_CHANGE, Some(on_module)),
        (
            raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
            Some(on_role),
        ),
        (raw::REDISMODULE_EVENT_CRON_LOOP, Some(pulse::on_cron)),
    ];
    events
        .into_iter()
        .all(|(event, callback)| server_event(ctx, event, callback))
}

/// Subscribes to a server event, or with no callback ends that.
pub(super) fn server_event(ctx: Ctx, id: u64, callback: raw::RedisModuleEventCallback) -> bool {
    let event = raw::RedisModuleEvent { id, dataver: 1 };
    let status = api!(RedisModule_SubscribeToServerEvent(ctx.0, event, callback));
    status == Some(raw::REDISMODULE_OK as c_int)
}

/// While anybody waits or a hold belongs to a connection: connections that close,
/// turns of the event loop.
pub fn watch_clients(shell: &Shell, ctx: Ctx) {
    if !shell.watching_clients.get() {
        server_event(ctx, raw::REDISMODULE_EVENT_CLIENT_CHANGE, Some(on_client));
        server_event(ctx, raw::REDISMODULE_EVENT_EVENTLOOP, Some(on_loop));
        shell.watching_clients.set(true);
    }
}

pub fn unwatch_clients(shell: &Shell, ctx: Ctx) {
    if shell.watching_clients.get() {
        server_event(ctx, raw::REDISMODULE_EVENT_CLIENT_CHANGE, None);
        server_event(ctx, raw::REDISMODULE_EVENT_EVENTLOOP, None);
        shell.awake.set(false);
        shell.watching_clients.set(false);
    }
}

unsafe extern "C" fn on_flush(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    part: u64,
    data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a flush", (), || {
        let Some(shell) = shell().filter(|_| part == raw::REDISMODULE_SUBEVENT_FLUSHDB_END) else {
            return;
        };
        // SAFETY: the server passes this structure with this event.
        let info = unsafe { data.cast::<raw::RedisModuleFlushInfoV1>().as_ref() };
        let db = info.map(|info| info.dbnum).filter(|db| *db >= 0);
        replaced(shell, ctx, [Note::Replaced(db, Cause::Removed)]);
    });
}

unsafe extern "C" fn on_swap(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _part: u64,
    data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a swap", (), || {
        // SAFETY: the server passes this structure with this event.
        let info = unsafe { data.cast::<raw::RedisModuleSwapDbInfo>().as_ref() };
        if let (Some(shell), Some(info)) = (shell(), info) {
            let note = Note::Swapped(info.dbnum_first, info.dbnum_second);
            replaced(shell, ctx, [note]);
        }
    });
}

unsafe extern "C" fn on_loading(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    part: u64,
    _data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a load", (), || {
        let over = matches!(
            part,
            raw::REDISMODULE_SUBEVENT_LOADING_ENDED | raw::REDISMODULE_SUBEVENT_LOADING_FAILED
        );
        if let Some(shell) = shell() {
            shell.loading.set(!over);
            records::doubt(shell);
        }
        if let Some(shell) = shell().filter(|_| over) {
            // The flush before the load is part of it.
            if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
                inbox.forget_flushes();
            }
            // A lock that is there again is the same one: DEBUG RELOAD, a
            // load that failed.
            replaced(shell, ctx, [Note::Replaced(None, Cause::Unknown)]);
        }
    });
}

/// Whole databases changed. Nothing to do if nothing is known.
fn replaced(shell: &Shell, ctx: Ctx, notes: impl IntoIterator<Item = Note>) {
    let anything = shell.core.try_borrow().is_ok_and(|core| !core.is_idle());
    if anything {
        leave(shell, ctx, notes, After::Command);
    }
}

unsafe extern "C" fn on_role(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    part: u64,
    _data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a change of role", (), || {
        let replica = part == raw::REDISMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA;
        let Some(shell) = shell() else {
            return;
        };
        records::doubt(shell);
        shell.listening.set(!replica);
        if !replica {
            // What happened to keys meanwhile was not noted.
            return replaced(shell, ctx, [Note::Replaced(None, Cause::Unknown)]);
        }
        if let Ok(mut core) = shell.core.try_borrow_mut() {
            for client in core.demoted() {
                closing::close_soon(shell, ctx, client);
            }
        }
        if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
            inbox.take();
        }
    });
}

/// A replica is online; or a child was forked, which may be to bring a replica
/// up: it serves subscribers for a while before the server calls it online.
unsafe extern "C" fn on_replica(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _part: u64,
    _data: *mut c_void,
) {
    guarded(Ctx(ctx), "a replica's coming", (), || {
        if let Some(shell) = shell() {
            shell.replicas.set(true);
            records::doubt(shell);
        }
    });
}

/// A data set is saved. SAVE needs no child, and its file tells where in the backlog
/// it was made: a replica that begins with it asks for what comes after.
unsafe extern "C" fn on_save(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _part: u64,
    _data: *mut c_void,
) {
    guarded(Ctx(ctx), "a save", (), || {
        if let Some(shell) = shell() {
            records::doubt(shell);
        }
    });
}

unsafe extern "C" fn on_module(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _part: u64,
    _data: *mut c_void,
) {
    guarded(Ctx(ctx), "another module", (), || {
        // One that goes is shown still.
        if let Some(shell) = shell() {
            alone::look(shell, Ctx(ctx));
        }
    });
}

unsafe extern "C" fn on_client(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    part: u64,
    data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a client's end", (), || {
        let closed = part == raw::REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED;
        // SAFETY: the server passes this structure with this event.
        let info = unsafe { data.cast::<raw::RedisModuleClientInfo>().as_ref() };
        if let (Some(shell), Some(info)) = (shell().filter(|_| closed), info) {
            blocking::client_closed(shell, ctx, info.id);
            let holds = shell
                .core
                .try_borrow()
                .map_or(true, |core| core.is_bound(info.id));
            if holds {
                leave(shell, ctx, [Note::Closed(info.id)], After::Turn);
            }
        }
    });
}

unsafe extern "C" fn on_loop(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    part: u64,
    _data: *mut c_void,
) {
    guarded(Ctx(ctx), "a turn of the loop", (), || {
        let Some(shell) = shell() else {
            return;
        };
        let after = part == raw::REDISMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP;
        shell.awake.set(after);
        match shell.server.wakeup {
            _ if after => blocking::turn_over(shell),
            Wakeup::BeforeSleep => blocking::deliver(shell),
            _ => {}
        }
    });
}
