//! Events of single keys: deleted, renamed, expired, given another TTL, by whoever
//! did it.
//!
//! A subscription costs the server a callback for each event of its classes. So there
//! is none before the first lock, and then for the classes *generic*, *expired* and
//! *evicted*, which SET, GET and HSET do not emit. Changes of hashes that stay matter
//! once somebody waits for a read/write lock; overwritten keys, while a watchdog's
//! connection is to be told of its loss at once.

use std::ffi::{c_char, c_int, c_void, CStr};

use redis_module::raw;

use super::events::server_event;
use super::ffi::{api, bytes_of, guarded, Ctx};
use super::notes::{changed, leave, After};
use super::shell::{shell, Shell};
use crate::lock::{Bytes, Cause, Key, Note};
use crate::redisson;

/// From the first lock on: what becomes of its key.
pub fn watch(shell: &Shell, ctx: Ctx) {
    if shell.watching_keys.get() {
        return;
    }
    let classes = raw::REDISMODULE_NOTIFY_GENERIC
        | raw::REDISMODULE_NOTIFY_EXPIRED
        | raw::REDISMODULE_NOTIFY_EVICTED;
    if subscribe(ctx, classes, on_key) {
        shell.watching_keys.set(true);
    } else {
        ctx.warn("rlock: no keyspace events to be had; a key changed by hand goes unnoticed");
    }
}

/// For good, once a request waits for a read/write lock: a reader or writer that
/// knows nothing of rlock may leave while others stay.
pub fn watch_hashes(shell: &Shell, ctx: Ctx) {
    if shell.watching_hashes.get() {
        return;
    }
    if subscribe(ctx, raw::REDISMODULE_NOTIFY_HASH, on_hash) {
        shell.watching_hashes.set(true);
    } else {
        ctx.warn("rlock: no hash events to be had; a hold that others end goes unnoticed");
    }
}

type OnEvent = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    c_int,
    *const c_char,
    *mut raw::RedisModuleString,
) -> c_int;

fn subscribe(ctx: Ctx, classes: i32, callback: OnEvent) -> bool {
    let status = api!(RedisModule_SubscribeToKeyspaceEvents(
        ctx.0,
        classes as c_int,
        Some(callback)
    ));
    status == Some(raw::REDISMODULE_OK as c_int)
}

/// While there is a watchdog hold: keys that are overwritten (SET over a lock), which
/// is no event of the classes above. `false`: this server (Redis 7.0) cannot tell.
pub fn watch_overwrites(shell: &Shell, ctx: Ctx) -> bool {
    if !shell.watching_overwrites.get() {
        let told = server_event(ctx, raw::REDISMODULE_EVENT_KEY, Some(on_overwrite));
        shell.watching_overwrites.set(told);
    }
    shell.watching_overwrites.get()
}

/// When the last watchdog hold has ended.
pub fn unwatch_overwrites(shell: &Shell, ctx: Ctx) {
    if shell.watching_overwrites.replace(false) {
        server_event(ctx, raw::REDISMODULE_EVENT_KEY, None);
    }
}

/// Whether anybody can hear a keyspace event: clients do only if the server is
/// set to publish some, and modules only if another one is loaded. Emitting one
/// that nobody hears costs an uncontended lock a tenth.
pub fn are_heard(shell: &Shell) -> bool {
    let published = api!(RedisModule_GetNotifyKeyspaceEvents());
    !shell.alone.get() || published != Some(0)
}

unsafe extern "C" fn on_key(
    ctx: *mut raw::RedisModuleCtx,
    _class: c_int,
    event: *const c_char,
    name: *mut raw::RedisModuleString,
) -> c_int {
    let ctx = Ctx(ctx);
    guarded(ctx, "a key event", (), || {
        let Some(shell) = shell() else {
            return;
        };
        // SAFETY: both live until the callback returns.
        let (event, name) = unsafe { (CStr::from_ptr(event).to_bytes(), bytes_of(name)) };
        let db = ctx.db();
        if shell.listens() && !is_strange(shell, db, name) {
            key_changed(shell, ctx, db, event, name);
        }
        put_back(shell, ctx, db, event);
    });
    raw::REDISMODULE_OK as c_int
}

/// Valkey 8.1 runs us on the client of MOVE, perhaps the one that the master's commands
/// come by, and selects the database of each event there: without this, what follows
/// would go to the wrong one. Elsewhere it changes nothing.
fn put_back(shell: &Shell, ctx: Ctx, db: i32, event: &[u8]) {
    match event {
        b"move_from" => shell.moved_from.set(db),
        b"move_to" => ctx.select(shell.moved_from.get()),
        _ => {}
    }
}

unsafe extern "C" fn on_hash(
    ctx: *mut raw::RedisModuleCtx,
    _class: c_int,
    _event: *const c_char,
    name: *mut raw::RedisModuleString,
) -> c_int {
    let ctx = Ctx(ctx);
    guarded(ctx, "a hash event", (), || {
        let Some(shell) = shell().filter(|shell| shell.listens()) else {
            return;
        };
        // SAFETY: it lives until the callback returns.
        let name = unsafe { bytes_of(name) };
        if is_known(shell, ctx.db(), name) {
            // A change is no removal: who still holds the lock goes on holding it.
            let key = Key::new(ctx.db(), name);
            changed(shell, ctx, key, Cause::Unknown, After::Command);
        }
    });
    raw::REDISMODULE_OK as c_int
}

/// A key is about to be deleted, expired, evicted or overwritten. All but the last
/// is an event of the key as well, which comes when it is done.
unsafe extern "C" fn on_overwrite(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    part: u64,
    data: *mut c_void,
) {
    if part != raw::REDISMODULE_SUBEVENT_KEY_OVERWRITTEN {
        return;
    }
    let ctx = Ctx(ctx);
    guarded(ctx, "an overwritten key", (), || {
        let Some(shell) = shell().filter(|shell| shell.listens()) else {
            return;
        };
        // SAFETY: the server passes this structure with this event.
        let Some(info) = (unsafe { data.cast::<raw::RedisModuleKeyInfoV1>().as_ref() }) else {
            return;
        };
        let name = api!(RedisModule_GetKeyNameFromModuleKey(info.key));
        let Some(name) = name.filter(|name| !name.is_null()) else {
            return;
        };
        // SAFETY: the server keeps it until the callback returns.
        let name = unsafe { bytes_of(name) };
        if is_known(shell, ctx.db(), name) {
            let key = Key::new(ctx.db(), name);
            changed(shell, ctx, key, Cause::Removed, After::Command);
        } else {
            // Redisson writes a lease key anew when a reader nests.
            reader_changed(shell, ctx, name, Cause::Unknown, After::Command);
        }
    });
}

fn is_known(shell: &Shell, db: i32, name: &[u8]) -> bool {
    let core = shell.core.try_borrow();
    core.is_ok_and(|core| core.knows(db, name)) || is_on_its_way(shell, db, name)
}

/// Whether the key is none of ours, whatever has happened to it. Nearly all keys
/// are strangers, and with a lock held each DEL of one asks this.
fn is_strange(shell: &Shell, db: i32, name: &[u8]) -> bool {
    let core = shell.core.try_borrow();
    let inbox = shell.inbox.try_borrow();
    core.is_ok_and(|core| !core.knows(db, name))
        && inbox.is_ok_and(|inbox| !inbox.has_moves())
        && !redisson::is_lease_key(name)
}

/// If the name is that of a lease key: whoever it may belong to is to be looked at.
fn reader_changed(shell: &Shell, ctx: Ctx, name: &[u8], cause: Cause, after: After) {
    let db = ctx.db();
    let notes: Vec<Note> = match shell.core.try_borrow() {
        Ok(core) => redisson::readers(name)
            .filter(|(lock, owner)| core.knows_reader(db, lock, owner))
            .map(|(lock, owner)| Note::Reader(Key::new(db, lock), Bytes::from(owner), cause))
            .collect(),
        Err(_) => return,
    };
    if !notes.is_empty() {
        leave(shell, ctx, notes, after);
    }
}

fn key_changed(shell: &Shell, ctx: Ctx, db: i32, event: &[u8], name: &[u8]) {
    // The core is looking at a key, and opening it has expired it.
    let Ok(core) = shell.core.try_borrow() else {
        if event == b"expired" {
            shell.expired_here.set(true);
        }
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
        _ if known => {
            let (cause, after) = cause_of(event);
            changed(shell, ctx, Key::new(db, name), cause, after);
        }
        _ => {}
    }
    // A name can be both a lock's and a lease key's.
    let (cause, after) = cause_of(event);
    reader_changed(shell, ctx, name, cause, after);
}

/// Why a key went, if it did, by what happened to it last.
fn cause_of(event: &[u8]) -> (Cause, After) {
    match event {
        b"expired" => (Cause::Expired, After::Turn),
        b"evicted" => (Cause::Evicted, After::Turn),
        b"expire" | b"persist" => (Cause::Unknown, After::Command),
        _ => (Cause::Removed, After::Command),
    }
}

/// Whether a note that is not read yet says that a known key goes by this name.
fn is_on_its_way(shell: &Shell, db: i32, name: &[u8]) -> bool {
    let inbox = shell.inbox.try_borrow();
    inbox.is_ok_and(|inbox| inbox.has_moves() && inbox.has_arrived(&Key::new(db, name)))
}
