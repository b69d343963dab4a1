//! The wake-up message for those who wait by subscription, as Redisson does: they
//! subscribe to a channel named after the lock and try again when a message comes.

use redis_module::RedisValue;

use super::fair_queue;
use super::replication::Replication;
use crate::config;
use crate::lock::{Key, Listening, Whom};
use crate::redisson;
use crate::server::sys::{self, Text, To};

/// Tells those who wait by subscription that the lock was left free; whether anybody
/// does, if that matters to the core.
pub fn wake(to: &Replication<'_>, key: &Key, whom: Whom) -> Option<(Key, Listening)> {
    let shared = whom != Whom::One;
    let message = match whom {
        Whom::AllShared => &to.shell.server.one,
        Whom::One | Whom::OneShared => &to.shell.server.zero,
    };
    let reaches = |channel: &[u8]| publish(to, channel, message);
    find(to, key, shared, Listening::Woken { shared }, reaches)
}

/// Whether anybody waits for the lock by subscription, without a message; `None`:
/// nobody does, and none was known to.
pub fn listening(to: &Replication<'_>, key: &Key, shared: bool) -> Option<(Key, Listening)> {
    find(to, key, shared, Listening::Waiting { shared }, |_| true)
}

/// Looks at the lock's channels for those who wait there, where this can be true of one.
/// What is `found` if there are any.
fn find(
    to: &Replication<'_>,
    key: &Key,
    shared: bool,
    found: Listening,
    can_be: impl Fn(&[u8]) -> bool,
) -> Option<(Key, Listening)> {
    let waits = |channel: &[u8]| can_be(channel) && subscribed(to, channel);
    let mut any = false;
    if config::redisson_compat() {
        any = waits(&redisson::channel(&key.name, shared));
        let head = (!shared).then(|| fair_queue::head(to.ctx, key)).flatten();
        if let Some(head) = head {
            any |= waits(&redisson::fair_channel(&key.name, &head));
        }
    }
    if any {
        return Some((key.clone(), found));
    }
    let known = to.shell.locks.ask(|core| core.knows_subscribers(key));
    known?.then(|| (key.clone(), Listening::Nobody))
}

/// Publishes; whether this server has anybody to hear it.
fn publish(to: &Replication<'_>, channel: &[u8], message: &Text<'_>) -> bool {
    let Some(channel) = Text::new(channel) else {
        return false;
    };
    let cluster = to.shell.server.cluster;
    let heard = sys::publish(to.ctx, cluster, &channel, message);
    // The call above reaches only subscribers of this server, outside a cluster.
    if !cluster && to.shell.situation.replicas.get() {
        let args = [&channel, message];
        if to.send(To::Replicas, c"PUBLISH", args, None).is_none() {
            to.ctx
                .warn("rlock: the server did not replicate a wake-up message");
        }
    }
    heard > 0
}

/// Whether anybody subscribes to the channel by its name. Those who listen to a
/// pattern do not wait for the lock.
fn subscribed(to: &Replication<'_>, channel: &[u8]) -> bool {
    let which: &[u8] = if to.shell.server.cluster {
        b"SHARDNUMSUB"
    } else {
        b"NUMSUB"
    };
    // The channel, and how many subscribe to it.
    match sys::ask(to.ctx, "PUBSUB", &[which, channel]) {
        Some(RedisValue::Array(pair)) => {
            matches!(pair.get(1), Some(RedisValue::Integer(count)) if *count > 0)
        }
        _ => false,
    }
}
