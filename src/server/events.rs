//! What the server tells us: keys that changed, databases that were emptied or
//! exchanged, clients that closed. These callbacks only record; a job or the timer
//! acts, through the gate.
//!
//! Subscriptions cost the server something for every event of their classes, so
//! none is in force before it is needed. Key events (classes generic, expired and
//! evicted, which SET, GET and HSET do not emit) are, from the first lock on.
//! Client and event-loop events are, while anybody waits.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;

use redis_module::raw;

use super::blocking;
use super::ffi::{api, bytes_of, guarded, Ctx};
use super::inbox::Note;
use super::serve::{self, Occasion};
use super::shell::{shell, Shell};
use super::timer;
use super::version::Wakeup;
use crate::lock::{Cause, Key};

/// Subscribes to what is rare, at load. `false`: the server refused.
pub fn subscribe(ctx: Ctx) -> bool {
    let events: [(u64, raw::RedisModuleEventCallback); 7] = [
        (raw::REDISMODULE_EVENT_FLUSHDB, Some(on_flush)),
        (raw::REDISMODULE_EVENT_SWAPDB, Some(on_swap)),
        (raw::REDISMODULE_EVENT_LOADING, Some(on_loading)),
        (raw::REDISMODULE_EVENT_REPLICA_CHANGE, Some(on_replica)),
        (raw::REDISMODULE_EVENT_FORK_CHILD, Some(on_replica)),
        (raw::REDISMODULE_EVENT_MODULE_CHANGE, Some(on_module)),
        (
            raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
            Some(on_role),
        ),
    ];
    events
        .into_iter()
        .all(|(event, callback)| server_event(ctx, event, callback))
}

/// Whether replicas are attached now; from then on `on_replica` tells.
pub fn replicas(ctx: Ctx) -> bool {
    let Some(info) = api!(RedisModule_GetServerInfo(ctx.0, c"replication".as_ptr())) else {
        return true;
    };
    let mut err = 0;
    let count = api!(RedisModule_ServerInfoGetFieldSigned(
        info,
        c"connected_slaves".as_ptr(),
        &raw mut err
    ));
    api!(RedisModule_FreeServerInfo(ctx.0, info));
    count != Some(0)
}

/// Subscribes to a server event, or with no callback ends that.
fn server_event(ctx: Ctx, id: u64, callback: raw::RedisModuleEventCallback) -> bool {
    let event = raw::RedisModuleEvent { id, dataver: 1 };
    let status = api!(RedisModule_SubscribeToServerEvent(ctx.0, event, callback));
    status == Some(raw::REDISMODULE_OK as c_int)
}

/// From the first lock on: what becomes of its key.
pub fn watch_keys(shell: &Shell, ctx: Ctx) {
    if shell.watching_keys.get() {
        return;
    }
    let classes = raw::REDISMODULE_NOTIFY_GENERIC
        | raw::REDISMODULE_NOTIFY_EXPIRED
        | raw::REDISMODULE_NOTIFY_EVICTED;
    let status = api!(RedisModule_SubscribeToKeyspaceEvents(
        ctx.0,
        classes as c_int,
        Some(on_key)
    ));
    if status == Some(raw::REDISMODULE_OK as c_int) {
        shell.watching_keys.set(true);
    } else {
        ctx.warn("rlock: no keyspace events to be had; a key changed by hand goes unnoticed");
    }
}

/// Whether anybody can hear a keyspace event: clients do only if the server is
/// set to publish some, and modules only if another one is loaded. Emitting one
/// that nobody hears costs an uncontended lock a tenth.
pub fn are_heard(shell: &Shell) -> bool {
    let published = api!(RedisModule_GetNotifyKeyspaceEvents());
    !shell.alone.get() || published != Some(0)
}

/// While anybody waits: connections that close, turns of the event loop.
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
        shell.watching_clients.set(false);
    }
}

/// Leaves notes, and sees to it that they are read: right after the command that
/// caused them, where the server can do that, else by the timer.
fn leave(shell: &Shell, ctx: Ctx, notes: impl IntoIterator<Item = Note>, after: After) {
    let Ok(mut inbox) = shell.inbox.try_borrow_mut() else {
        return;
    };
    for note in notes {
        inbox.has_moves |= matches!(note, Note::Renamed(..));
        match (&note, inbox.notes.last_mut()) {
            (Note::Changed(key, cause), Some(Note::Changed(last, heard))) if key == last => {
                *heard = (*heard).max(*cause);
            }
            _ => inbox.notes.push(note),
        }
    }
    let by_job = after == After::Command && shell.server.jobs;
    if by_job && inbox.job_is_due {
        return;
    }
    let status = by_job.then(|| {
        api!(RedisModule_AddPostNotificationJob(
            ctx.0,
            Some(on_job),
            ptr::null_mut(),
            None
        ))
    });
    if status == Some(Some(raw::REDISMODULE_OK as c_int)) {
        inbox.job_is_due = true;
        return;
    }
    drop(inbox);
    timer::arm_now(shell, ctx);
}

/// After what notes are to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The command under way. Its effects and ours replicate as one.
    Command,
    /// This turn of the event loop: the cause may be a command that replicates
    /// its effects one by one (SCAN finding a key that ran out), and a replica
    /// cut off in between would have a lock without a lease.
    Turn,
}

unsafe extern "C" fn on_job(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a job", (), || {
        let Some(shell) = shell() else {
            return;
        };
        if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
            inbox.job_is_due = false;
        }
        serve::serve(shell, ctx, Occasion::Job);
        serve::arm_for_next(shell, ctx);
    });
}

unsafe extern "C" fn on_key(
    ctx: *mut raw::RedisModuleCtx,
    _class: c_int,
    event: *const c_char,
    name: *mut raw::RedisModuleString,
) -> c_int {
    let ctx = Ctx(ctx);
    guarded(ctx, "a key event", (), || {
        if let Some(shell) = shell().filter(|shell| !shell.writing.get()) {
            // SAFETY: both live until the callback returns.
            let (event, name) = unsafe { (CStr::from_ptr(event), bytes_of(name)) };
            key_changed(shell, ctx, event.to_bytes(), name);
        }
    });
    raw::REDISMODULE_OK as c_int
}

fn key_changed(shell: &Shell, ctx: Ctx, event: &[u8], name: &[u8]) {
    let db = ctx.db();
    // The core is looking at a key, and opening it has expired it.
    let Ok(core) = shell.core.try_borrow() else {
        shell.expired_here.set(event == b"expired");
        return;
    };
    let known = core.knows(db, name) || is_on_its_way(shell, db, name);
    drop(core);
    match event {
        b"rename_from" | b"move_from" => {
            if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
                inbox.leaving = known.then(|| Key::new(db, name));
            }
        }
        b"rename_to" | b"move_to" => {
            let from = match shell.inbox.try_borrow_mut() {
                Ok(mut inbox) => inbox.leaving.take(),
                Err(_) => None,
            };
            let to = Key::new(db, name);
            match from {
                Some(from) => leave(shell, ctx, [Note::Renamed(from, to)], After::Command),
                None if known => changed(shell, ctx, to, Cause::Removed, After::Command),
                None => {}
            }
        }
        _ if !known => {}
        b"expired" => {
            let key = Key::new(db, name);
            changed(shell, ctx, key, Cause::Expired, After::Turn);
        }
        b"evicted" => {
            let key = Key::new(db, name);
            changed(shell, ctx, key, Cause::Evicted, After::Turn);
        }
        b"expire" | b"persist" => {
            let key = Key::new(db, name);
            changed(shell, ctx, key, Cause::Unknown, After::Command);
        }
        _ => {
            let key = Key::new(db, name);
            changed(shell, ctx, key, Cause::Removed, After::Command);
        }
    }
}

/// Whether a note that is not read yet says that a known key goes by this name.
fn is_on_its_way(shell: &Shell, db: i32, name: &[u8]) -> bool {
    let arrives =
        |note: &Note| matches!(note, Note::Renamed(_, to) if to.db == db && *to.name == *name);
    let inbox = shell.inbox.try_borrow();
    inbox.is_ok_and(|inbox| inbox.has_moves && inbox.notes.iter().any(arrives))
}

fn changed(shell: &Shell, ctx: Ctx, key: Key, cause: Cause, after: After) {
    leave(shell, ctx, [Note::Changed(key, cause)], after);
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
        if let Some(shell) = shell().filter(|_| over) {
            // The flush before the load is part of it.
            if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
                let flush = |note: &Note| matches!(note, Note::Replaced(..));
                inbox.notes.retain(|note| !flush(note));
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
        let Some(shell) = shell().filter(|_| replica) else {
            return;
        };
        if let Ok(mut core) = shell.core.try_borrow_mut() {
            core.demoted();
        }
        if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
            inbox.notes.clear();
            inbox.has_moves = false;
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
        // Whether it came or went: from now on somebody may hear.
        if let Some(shell) = shell() {
            shell.alone.set(false);
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
        shell.sleeping.set(!after);
        match shell.server.wakeup {
            _ if after => blocking::turn_over(shell),
            Wakeup::BeforeSleep => blocking::deliver(shell),
            _ => {}
        }
    });
}
