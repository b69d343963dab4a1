//! Tells others what the core decided, when all its writes are done (`write`): the
//! keyspace events, the wake-ups, the replies. Any of these can run somebody's
//! callback, which may change a key, so no key of ours may be open.

use std::ffi::{c_int, CStr};

use redis_module::raw;

use super::ffi::{api, Ctx, Given, Selected};
use super::shell::Shell;
use super::{blocking, closing, key_events, publish, turns};
use crate::lock::{Bytes, Effect, Effects, Event, Key};
use crate::redisson;

/// Tells whoever is to know, in the order of the decisions. No key may be open.
pub fn tell(shell: &Shell, ctx: Ctx, given: Given<'_>, effects: &mut Effects) {
    let before = shell.writing.replace(true);
    let are_heard = key_events::are_heard(shell);
    let some_unwritten = shell.unwritten.try_borrow().is_ok_and(|u| !u.is_empty());
    for effect in effects.iter() {
        match effect {
            Effect::Wake { key, whom } => {
                turns::heard(shell, key, publish::wake(shell, ctx, key, *whom));
            }
            Effect::Passed { key, shared } => {
                turns::heard(shell, key, publish::listening(shell, ctx, key, *shared));
            }
            _ if some_unwritten && !was_written(shell, effect) => {}
            _ if are_heard => notify_of(ctx, given, effect),
            _ => {}
        }
    }
    shell.writing.set(before);
    if let Ok(mut unwritten) = shell.unwritten.try_borrow_mut() {
        unwritten.clear();
    }
    for effect in effects.drain(..) {
        match effect {
            Effect::Answer { waiter, outcome } => blocking::settle(shell, ctx, waiter, outcome),
            Effect::Close { client } => closing::close_soon(shell, ctx, client),
            _ => {}
        }
    }
}

/// Whether the write took place, as nearly all do. Those that did not stand in the same
/// order as all.
fn was_written(shell: &Shell, effect: &Effect) -> bool {
    let unwritten = shell.unwritten.try_borrow_mut();
    !unwritten.is_ok_and(|mut all| all.pop_front_if(|next| next == effect).is_some())
}

/// Emits the keyspace events of an effect.
fn notify_of(ctx: Ctx, given: Given<'_>, effect: &Effect) {
    let notify = |key: &Key, events: &[Name]| notify(ctx, given, key, events);
    let notify_lease = |key: &Key, owner: &Bytes, index, events| {
        let name = redisson::lease_key(&key.name, owner, index);
        notify(&Key::new(key.db, &name), events);
    };
    match effect {
        Effect::Take { key, .. } => notify(key, &[HSET, EXPIRE]),
        Effect::Count { key, holds, by, .. } if holds == by => notify(key, &[HSET]),
        Effect::Count { key, .. } => notify(key, &[HINCRBY]),
        Effect::Drop { key, .. } => notify(key, &[HDEL]),
        Effect::SetMode { key, .. } => notify(key, &[HSET]),
        Effect::Lease {
            key,
            owner,
            index,
            at,
        } => {
            let events: &[Name] = match at {
                Some(_) => &[SET, EXPIRE],
                None => &[SET],
            };
            notify_lease(key, owner, *index, events);
        }
        Effect::LeaseAt {
            key, owner, index, ..
        } => notify_lease(key, owner, *index, &[EXPIRE]),
        Effect::EndLease { key, owner, index } => notify_lease(key, owner, *index, &[DEL]),
        Effect::Fence { key, .. } => {
            let name = redisson::counter(&key.name);
            notify(&Key::new(key.db, &name), &[SET]);
        }
        Effect::ExpireAt { key, .. } => notify(key, &[EXPIRE]),
        Effect::Delete { key } => notify(key, &[DEL]),
        Effect::Tell { key, event } => {
            let name = match event {
                Event::Acquired => c"rlock.acquired",
                Event::Released => c"rlock.released",
                Event::Renewed => c"rlock.renewed",
                Event::Expired => c"rlock.expired",
                Event::Forced => c"rlock.forced",
                Event::Evicted => c"rlock.evicted",
            };
            notify(key, &[(raw::REDISMODULE_NOTIFY_MODULE, name)]);
        }
        Effect::Wake { .. }
        | Effect::Passed { .. }
        | Effect::Answer { .. }
        | Effect::Close { .. } => {}
    }
}

type Name = (i32, &'static CStr);

// The server's own events, which its handles do not emit by themselves.
const HSET: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hset");
const HINCRBY: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hincrby");
const HDEL: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hdel");
const SET: Name = (raw::REDISMODULE_NOTIFY_STRING, c"set");
const EXPIRE: Name = (raw::REDISMODULE_NOTIFY_GENERIC, c"expire");
const DEL: Name = (raw::REDISMODULE_NOTIFY_GENERIC, c"del");

/// Emits keyspace events on a key.
fn notify(ctx: Ctx, given: Given<'_>, key: &Key, events: &[Name]) {
    let Some(name) = given.text(&key.name) else {
        return;
    };
    let _db = Selected::new(ctx, key.db);
    for (class, event) in events {
        api!(RedisModule_NotifyKeyspaceEvent(
            ctx.0,
            *class as c_int,
            event.as_ptr(),
            name.as_ptr()
        ));
    }
}
