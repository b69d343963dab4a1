//! The wake-up message for those who wait by subscription, as Redisson does: they
//! subscribe to a channel named after the lock and try again when a message comes.

use redis_module::RedisValue;

use super::fair_queue;
use super::replication::{By, Replication};
use crate::config;
use crate::lock::{Key, Listening, Whom};
use crate::redisson;
use crate::server::shell::Shell;
use crate::server::sys::{self, Ctx, Text, To};

/// Tells those who wait by subscription that the lock was left free; whether anybody
/// does, if that matters to the core.
pub fn wake(shell: &Shell, ctx: Ctx<'_>, by: By, key: &Key, whom: Whom) -> Option<Listening> {
    let shared = whom != Whom::One;
    if !config::redisson_compat() {
        return known(shell, key).then_some(Listening::Nobody);
    }
    let channel = redisson::channel(&key.name, shared);
    let message = match whom {
        Whom::AllShared => &shell.server.one,
        Whom::One | Whom::OneShared => &shell.server.zero,
    };
    let mut woken = publish(shell, ctx, by, &channel, message) && subscribed(shell, ctx, &channel);
    if !shared {
        if let Some(head) = fair_queue::head(ctx, key) {
            let channel = redisson::fair_channel(&key.name, &head);
            publish(shell, ctx, by, &channel, &shell.server.zero);
            woken = woken || subscribed(shell, ctx, &channel);
        }
    }
    if woken {
        return Some(Listening::Woken { shared });
    }
    known(shell, key).then_some(Listening::Nobody)
}

/// Whether anybody waits for the lock by subscription, without a message; `None`:
/// nobody does, and none was known to.
pub fn listening(shell: &Shell, ctx: Ctx<'_>, key: &Key, shared: bool) -> Option<Listening> {
    let waits = || {
        if subscribed(shell, ctx, &redisson::channel(&key.name, shared)) {
            return true;
        }
        let head = fair_queue::head(ctx, key).filter(|_| !shared);
        head.is_some_and(|head| subscribed(shell, ctx, &redisson::fair_channel(&key.name, &head)))
    };
    if config::redisson_compat() && waits() {
        return Some(Listening::Waiting { shared });
    }
    known(shell, key).then_some(Listening::Nobody)
}

/// Whether the core knows of anybody who waits for the lock by subscription.
fn known(shell: &Shell, key: &Key) -> bool {
    let known = shell.locks.ask(|core| core.knows_subscribers(key));
    known.unwrap_or(false)
}

/// Publishes; whether this server has anybody to hear it.
fn publish(shell: &Shell, ctx: Ctx<'_>, by: By, channel: &[u8], message: &Text<'_>) -> bool {
    let Some(channel) = Text::new(channel) else {
        return false;
    };
    let cluster = shell.server.cluster;
    let heard = sys::publish(ctx, cluster, &channel, message);
    // The call above reaches only subscribers of this server, outside a cluster.
    if !cluster && shell.situation.replicas.get() {
        let args = [&channel, message];
        let sent = Replication { shell, ctx, by }.send(To::Replicas, c"PUBLISH", args, None);
        if sent.is_none() {
            ctx.warn("rlock: the server did not replicate a wake-up message");
        }
    }
    heard > 0
}

/// Whether anybody subscribes to the channel by its name. Those who listen to a
/// pattern do not wait for the lock.
fn subscribed(shell: &Shell, ctx: Ctx<'_>, channel: &[u8]) -> bool {
    let which: &[u8] = if shell.server.cluster {
        b"SHARDNUMSUB"
    } else {
        b"NUMSUB"
    };
    // The channel, and how many subscribe to it.
    match sys::ask(ctx, "PUBSUB", &[which, channel]) {
        Some(RedisValue::Array(pair)) => {
            matches!(pair.get(1), Some(RedisValue::Integer(count)) if *count > 0)
        }
        _ => false,
    }
}
