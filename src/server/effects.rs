//! Carries out what the core decided.
//!
//! In two passes: first all writes to the keyspace, each replicated as the plain
//! command it amounts to, then everything that lets others run or know (events,
//! publishes, replies). Another module's event callback may change a key, and no
//! key of ours may be open then.

use std::ffi::{c_int, CStr};

use redis_module::raw;

use super::ffi::{api, Ctx, Given, Selected, Text};
use super::keyspace::ServerKeyspace;
use super::replication as replicate;
use super::shell::Shell;
use super::{blocking, key_events, publish};
use crate::lock::{Effect, Effects, Event, Key};

/// The first pass: the keyspace, the replicas, the AOF.
pub fn write(
    shell: &Shell,
    ctx: Ctx,
    ks: &mut ServerKeyspace,
    given: Given<'_>,
    effects: &[Effect],
) {
    for effect in effects {
        if write_one(shell, ctx, ks, given, effect).is_none() {
            ctx.warn(&format!("rlock: the server refused a write: {effect:?}"));
        }
    }
}

/// The second pass: whoever is to know. No key may be open.
pub fn tell(shell: &Shell, ctx: Ctx, given: Given<'_>, effects: &mut Effects) {
    shell.writing.set(true);
    let heard = key_events::are_heard(shell);
    for effect in effects.iter() {
        match effect {
            Effect::Wake { key, shared } => publish::wake(shell, ctx, key, *shared),
            _ if heard => notify_of(ctx, given, effect),
            _ => {}
        }
    }
    shell.writing.set(false);
    for effect in effects.drain(..) {
        if let Effect::Answer { waiter, outcome } = effect {
            blocking::settle(shell, ctx, waiter, outcome);
        }
    }
}

fn write_one(
    shell: &Shell,
    ctx: Ctx,
    ks: &mut ServerKeyspace,
    given: Given<'_>,
    effect: &Effect,
) -> Option<()> {
    match effect {
        Effect::Take { key, owner, at } => {
            let (name, owner) = (given.text(&key.name)?, given.text(owner)?);
            ks.set_holds(key, &owner, &shell.one)?;
            replicate::hset(ctx, key.db, &name, &owner, &shell.one)?;
            ks.expire_at(key, *at)?;
            replicate::pexpireat(ctx, key.db, &name, *at)?;
        }
        Effect::Count {
            key,
            owner,
            holds,
            by,
        } => {
            let (name, owner) = (given.text(&key.name)?, given.text(owner)?);
            let holds = Text::new(holds.to_string().as_bytes())?;
            ks.set_holds(key, &owner, &holds)?;
            replicate::hincrby(ctx, key.db, &name, &owner, *by)?;
        }
        Effect::ExpireAt { key, at } => {
            ks.expire_at(key, *at)?;
            replicate::pexpireat(ctx, key.db, &given.text(&key.name)?, *at)?;
        }
        Effect::Delete { key } => {
            ks.delete(key)?;
            replicate::del(ctx, key.db, &given.text(&key.name)?)?;
        }
        Effect::Tell { .. } | Effect::Wake { .. } | Effect::Answer { .. } => return Some(()),
    }
    ks.touched()
}

/// Emits the keyspace events of an effect.
fn notify_of(ctx: Ctx, given: Given<'_>, effect: &Effect) {
    let notify = |key, events| notify(ctx, given, key, events);
    match effect {
        Effect::Take { key, .. } => notify(key, &[HSET, EXPIRE]),
        Effect::Count { key, .. } => notify(key, &[HINCRBY]),
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
        Effect::Wake { .. } | Effect::Answer { .. } => {}
    }
}

type Name = (i32, &'static CStr);

// The server's own events, which its handles do not emit by themselves.
const HSET: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hset");
const HINCRBY: Name = (raw::REDISMODULE_NOTIFY_HASH, c"hincrby");
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
