//! Events of single keys: deleted, renamed, expired, given another TTL, by whoever
//! did it.
//!
//! The classes are *generic*, *expired* and *evicted*, which SET, GET and HSET do
//! not emit; a subscription costs the server a callback for each event of its
//! classes, so there is none before the first lock.

use std::ffi::{c_char, c_int, CStr};

use redis_module::raw;

use super::ffi::{api, bytes_of, guarded, Ctx};
use super::inbox::Note;
use super::notes::{changed, leave, After};
use super::shell::{shell, Shell};
use crate::lock::{Cause, Key};

/// From the first lock on: what becomes of its key.
pub fn watch(shell: &Shell, ctx: Ctx) {
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
        _ => {
            let (cause, after) = match event {
                b"expired" => (Cause::Expired, After::Turn),
                b"evicted" => (Cause::Evicted, After::Turn),
                b"expire" | b"persist" => (Cause::Unknown, After::Command),
                _ => (Cause::Removed, After::Command),
            };
            changed(shell, ctx, Key::new(db, name), cause, after);
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
