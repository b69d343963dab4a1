//! Events of single keys: deleted, renamed, expired, given another TTL, by whoever
//! did it.
//!
//! A subscription costs the server a callback for each event of its classes. So there
//! is none while nothing is to be observed ([`Core::observes`]), and then for the classes *generic*,
//! *expired* and *evicted*, which SET, GET and HSET do not emit. Changes of hashes that stay
//! matter once somebody waits for a read/write lock, or asks for permits; overwritten keys,
//! while a watchdog's connection is to be notified of its loss at once.
//!
//! Most servers cannot end a subscription: there a stranger is turned away before anything
//! else is done about it.

use std::cell::Cell;

use redis_module::NotifyEvent;

use super::tick::leave;
use crate::lock::{Cause, Core, Key, Note, Owner};
use crate::redisson;
use crate::server::shell::{ServerShell, SHELL};
use crate::server::sys::{subscribe_keys, unsubscribe_keys, Ctx, OnKey};

const CLASSES: NotifyEvent = NotifyEvent::GENERIC
    .union(NotifyEvent::EXPIRED)
    .union(NotifyEvent::EVICTED);

/// Once something is to be observed: what becomes of keys.
pub fn watch(shell: &ServerShell, ctx: Ctx<'_>) {
    if shell.subscriptions.keys.get() || !shell.observes_any() {
        return;
    }
    let otherwise = "rlock: no keyspace events to be had; a key changed by hand goes unnoticed";
    listen::<KeyEvents>(&shell.subscriptions.keys, ctx, CLASSES, otherwise);
}

/// Once a request waits for a read/write lock, or asks for permits: who knows
/// nothing of rlock may leave while others stay, or write what is no permit.
pub fn watch_hashes(shell: &ServerShell, ctx: Ctx<'_>) {
    let otherwise = "rlock: no hash events to be had; a hold that others end goes unnoticed";
    let hashes = &shell.subscriptions.hashes;
    listen::<HashEvents>(hashes, ctx, NotifyEvent::HASH, otherwise);
}

/// Once nothing is to be observed any more: unsubscribes from both, where the server can do that
/// (Redis 8.2).
pub fn relax(shell: &ServerShell, ctx: Ctx<'_>) {
    if !shell.observes_any() && !shell.recovery.is_walking() && !shell.has_notes() {
        let on = &shell.subscriptions;
        forget::<KeyEvents>(&on.keys, ctx, CLASSES);
        forget::<HashEvents>(&on.hashes, ctx, NotifyEvent::HASH);
    }
}

fn listen<H: OnKey>(on: &Cell<bool>, ctx: Ctx<'_>, classes: NotifyEvent, otherwise: &str) {
    if on.get() {
        return;
    }
    on.set(subscribe_keys::<H>(ctx, classes));
    if !on.get() {
        ctx.warn(otherwise);
    }
}

fn forget<H: OnKey>(on: &Cell<bool>, ctx: Ctx<'_>, classes: NotifyEvent) {
    if on.get() {
        on.set(!unsubscribe_keys::<H>(ctx, classes));
    }
}

struct KeyEvents;

impl OnKey for KeyEvents {
    const WHAT: &'static str = "a key event";

    fn on_key(ctx: Ctx<'_>, event: &[u8], name: &[u8]) {
        SHELL.with(ctx, |shell| {
            if !is_strange(shell, name) && shell.is_news(ctx, event, name) {
                key_changed(shell, ctx, event, name);
            }
            put_back(shell, ctx, event);
        });
    }
}

/// Valkey 8.1 runs us on the client of MOVE, perhaps the one that the master's commands
/// come by, and selects the database of each event there: without this, what follows
/// would go to the wrong one. Elsewhere it changes nothing.
fn put_back(shell: &ServerShell, ctx: Ctx<'_>, event: &[u8]) {
    match event {
        b"move_from" => shell.inbox.moved_from.set(ctx.db()),
        b"move_to" => {
            ctx.select(shell.inbox.moved_from.get());
        }
        _ => {}
    }
}

struct HashEvents;

impl OnKey for HashEvents {
    const WHAT: &'static str = "a hash event";

    fn on_key(ctx: Ctx<'_>, event: &[u8], name: &[u8]) {
        SHELL.with(ctx, |shell| {
            if shell.is_news(ctx, event, name) && shell.observes(ctx, name) {
                // A change is no removal: who still holds the lock goes on holding it.
                let note = Note::Changed(Key::new(ctx.db(), name), Cause::Unknown);
                leave(shell, ctx, [note]);
            }
        });
    }
}

/// A key is about to be overwritten.
pub fn overwritten(shell: &ServerShell, ctx: Ctx<'_>, name: &[u8]) {
    if !shell.is_news(ctx, b"", name) {
        return;
    }
    if shell.observes(ctx, name) {
        let note = Note::Changed(Key::new(ctx.db(), name), Cause::Overwritten);
        leave(shell, ctx, [note]);
    } else {
        // Redisson writes a lease key anew when a reader nests.
        reader_changed(shell, ctx, name, Cause::Unknown);
    }
}

/// Whether the key is none of ours, whatever has happened to it. Nearly all keys
/// are strangers, and where anything is to be observed each DEL of one asks this.
fn is_strange(shell: &ServerShell, name: &[u8]) -> bool {
    let all = shell.observes_all();
    let is_lease_key = |core: &Core| core.any_shared() && redisson::is_lease_key(name);
    let strange = |core: &Core| !core.may_observe(name, all) && !is_lease_key(core);
    // While the core is at work it is not known.
    shell.core.ask(strange).unwrap_or(false)
        && !shell.recovery.is_walking()
        && !shell.inbox.has_moves()
}

/// If the name is that of a lease key: whoever it may belong to is to be looked at.
fn reader_changed(shell: &ServerShell, ctx: Ctx<'_>, name: &[u8], cause: Cause) {
    let db = ctx.db();
    let notes = shell.core.ask(|core| {
        let readers = core.any_shared().then(|| redisson::readers(name));
        let readers = readers.into_iter().flatten();
        readers
            .filter(|(lock, owner)| core.knows_reader(db, lock, owner))
            .map(|(lock, owner)| Note::Reader(Key::new(db, lock), Owner::from(owner), cause))
            .collect::<Vec<_>>()
    });
    if let Some(notes) = notes.filter(|notes| !notes.is_empty()) {
        leave(shell, ctx, notes);
    }
}

fn key_changed(shell: &ServerShell, ctx: Ctx<'_>, event: &[u8], name: &[u8]) {
    let (db, all) = (ctx.db(), shell.observes_all());
    let Some(known) = shell.core.ask(|core| core.observes(db, name, all)) else {
        // The core is looking at a key, and opening it has expired it.
        if event == b"expired" {
            shell.own_work.ran_out.set(true);
        }
        return;
    };
    let known = known || shell.inbox.has_arrived(|| db, name);
    let cause = cause_of(event);
    let key = || Key::new(db, name);
    let from = match event {
        b"rename_to" | b"move_to" => {
            // Whatever is known: by notes that are still pending, another key may be meant.
            shell.recovery.arrived(key);
            shell.inbox.take_leaving()
        }
        _ => None,
    };
    match (event, from) {
        (b"rename_from" | b"move_from", _) => shell.inbox.leaves(known.then(key)),
        (_, Some(from)) => leave(shell, ctx, [Note::Renamed(from, key())]),
        (_, None) if known => leave(shell, ctx, [Note::Changed(key(), cause)]),
        (_, None) => {}
    }
    // A name can be both a lock's and a lease key's.
    reader_changed(shell, ctx, name, cause);
}

/// Why a key went, if it did, by what happened to it last.
fn cause_of(event: &[u8]) -> Cause {
    match event {
        b"expired" => Cause::Expired,
        b"evicted" => Cause::Evicted,
        b"expire" | b"persist" => Cause::Unknown,
        // Fields have run out: an event of hashes on Redis, of keys on Valkey.
        b"hexpired" => Cause::Unknown,
        b"set" | b"restore" | b"copy_to" | b"sortstore" | b"rename_to" => Cause::Overwritten,
        _ => Cause::Removed,
    }
}
