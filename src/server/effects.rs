//! Carries out what the core decided.
//!
//! In two passes: first all writes to the keyspace, each replicated as the plain
//! command it amounts to, then everything that lets others run or know (events,
//! publishes, replies). Another module's event callback may change a key, and no
//! key of ours may be open then.

use std::ffi::{c_int, CStr};

use redis_module::raw;

use super::ffi::{api, Ctx, Selected, Text};
use super::keyspace::ServerKeyspace;
use super::replication;
use super::shell::Shell;
use super::{blocking, publish};
use crate::lock::{Effect, Effects, Event, Key};

/// Carries out the effects of one request, in order.
pub fn carry_out(shell: &Shell, ctx: Ctx, mut ks: ServerKeyspace, effects: Effects) {
    write(ctx, &mut ks, &effects);
    drop(ks);
    tell(shell, ctx, effects);
}

/// The first pass: the keyspace, the replicas, the AOF.
pub fn write(ctx: Ctx, ks: &mut ServerKeyspace, effects: &[Effect]) {
    for effect in effects {
        write_one(ctx, ks, effect);
    }
}

/// The second pass: whoever is to know. No key may be open.
pub fn tell(shell: &Shell, ctx: Ctx, effects: Effects) {
    shell.writing.set(true);
    for effect in &effects {
        tell_one(shell, ctx, effect);
    }
    shell.writing.set(false);
    for effect in effects {
        if let Effect::Answer { waiter, outcome } = effect {
            blocking::settle(shell, ctx, waiter, outcome);
        }
    }
}

fn write_one(ctx: Ctx, ks: &mut ServerKeyspace, effect: &Effect) {
    let done = match effect {
        Effect::Take { key, owner, at } => ks
            .set_holds(key, owner, 1)
            .and_then(|()| replication::hset(ctx, key, owner))
            .and_then(|()| ks.expire_at(key, *at))
            .and_then(|()| replication::pexpireat(ctx, key, *at)),
        Effect::Count {
            key,
            owner,
            holds,
            by,
        } => ks
            .set_holds(key, owner, *holds)
            .and_then(|()| replication::hincrby(ctx, key, owner, *by)),
        Effect::ExpireAt { key, at } => ks
            .expire_at(key, *at)
            .and_then(|()| replication::pexpireat(ctx, key, *at)),
        Effect::Delete { key } => ks.delete(key).and_then(|()| replication::del(ctx, key)),
        Effect::Tell { .. } | Effect::Wake { .. } | Effect::Answer { .. } => Some(()),
    };
    if done.is_none() {
        ctx.warn(&format!("rlock: the server refused a write: {effect:?}"));
    }
}

fn tell_one(shell: &Shell, ctx: Ctx, effect: &Effect) {
    match effect {
        Effect::Take { key, .. } => notify(ctx, key, &[HSET, EXPIRE]),
        Effect::Count { key, .. } => notify(ctx, key, &[HINCRBY]),
        Effect::ExpireAt { key, .. } => notify(ctx, key, &[EXPIRE]),
        Effect::Delete { key } => notify(ctx, key, &[DEL]),
        Effect::Tell { key, event } => {
            let name = match event {
                Event::Acquired => c"rlock.acquired",
                Event::Released => c"rlock.released",
                Event::Renewed => c"rlock.renewed",
                Event::Expired => c"rlock.expired",
                Event::Forced => c"rlock.forced",
                Event::Evicted => c"rlock.evicted",
            };
            notify(ctx, key, &[(raw::REDISMODULE_NOTIFY_MODULE, name)]);
        }
        Effect::Wake { key, shared } => publish::wake(shell, ctx, key, *shared),
        Effect::Answer { .. } => {}
    }
}

type Name = (i32, &'static CStr);

// The server's own events, which its handles do not emit by themselves.
const HSET: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hset");
const HINCRBY: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hincrby");
const EXPIRE: Name = (raw::REDISMODULE_NOTIFY_GENERIC, c"expire");
const DEL: Name = (raw::REDISMODULE_NOTIFY_GENERIC, c"del");

/// Emits keyspace events on a key.
fn notify(ctx: Ctx, key: &Key, events: &[Name]) {
    let Some(name) = Text::new(&key.name) else {
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
