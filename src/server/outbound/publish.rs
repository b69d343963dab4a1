//! The wake-up message for those who wait by subscription, as Redisson does: they
//! subscribe to a channel named after the lock and try again when a message comes.

use super::fair_queue;
use super::reach::{anybody_waits, is_heard};
use super::replication::Replication;
use crate::config;
use crate::lock::{Key, Listening, Whom};
use crate::redisson;
use crate::server::sys::{self, Text, To};

/// Tells those who wait by subscription that the lock was left free; whether anybody
/// does, if that matters to the core.
pub fn wake(to: &Replication<'_>, key: &Key, whom: Whom) -> Option<(Key, Listening)> {
    let listens = || anybody_waits(to.ctx, to.shell.server.cluster);
    if can_be_late(to, key) && to.shell.unpublished.put_off(key, whom, listens) {
        return None;
    }
    let shared = whom != Whom::One;
    let reaches = |channel: &[u8]| publish(to, channel, whom) && is_heard(to, channel);
    find(to, key, shared, Listening::Woken { shared }, reaches)
}

/// The same, but for those alone who subscribe on this server: the key may never have been
/// a lock. Who subscribes to a replica finds out by the lease that it was told of.
pub fn wake_listeners(to: &Replication<'_>, key: &Key, whom: Whom) -> Option<(Key, Listening)> {
    let shared = whom != Whom::One;
    let reaches = |channel: &[u8]| is_heard(to, channel) && publish(to, channel, whom);
    find(to, key, shared, Listening::Woken { shared }, reaches)
}

/// Whether anybody waits for the lock by subscription, without a message; `None`:
/// nobody does, and none was known to.
pub fn listening(to: &Replication<'_>, key: &Key, shared: bool) -> Option<(Key, Listening)> {
    let listens = || anybody_waits(to.ctx, to.shell.server.cluster);
    if can_be_late(to, key) && !to.shell.unpublished.are_at_once(listens) {
        return None;
    }
    let waits = |channel: &[u8]| is_heard(to, channel);
    find(to, key, shared, Listening::Waiting { shared }, waits)
}

/// Whether it can be left for the next beat: who subscribes does so on this server, and
/// nobody is known to.
fn can_be_late(to: &Replication<'_>, key: &Key) -> bool {
    let known = to.shell.locks.ask(|core| core.knows_subscribers(key));
    !to.shell.situation.replicas.get() && known == Some(false)
}

/// The messages that were put off, if somebody listens by now; who does.
pub fn catch_up(to: &Replication<'_>) -> Vec<(Key, Listening)> {
    let late = to.shell.unpublished.take().into_iter();
    late.filter_map(|(key, whom)| wake(to, &key, whom))
        .collect()
}

/// Looks at the lock's channels for those who wait there. What is `found` if there are any.
fn find(
    to: &Replication<'_>,
    key: &Key,
    shared: bool,
    found: Listening,
    waits: impl Fn(&[u8]) -> bool,
) -> Option<(Key, Listening)> {
    let mut any = false;
    if config::redisson_compat() {
        any = waits(&redisson::channel(&key.name, shared));
        let head = (!shared).then(|| fair_queue::head(to.ctx, key)).flatten();
        if let Some(head) = head {
            any |= waits(&redisson::fair_channel(&key.name, &head));
        }
    }
    if any {
        to.shell.unpublished.seen();
        return Some((key.clone(), found));
    }
    let known = to.shell.locks.ask(|core| core.knows_subscribers(key));
    known?.then(|| (key.clone(), Listening::Nobody))
}

/// Publishes; whether this server has anybody to hear it.
fn publish(to: &Replication<'_>, channel: &[u8], whom: Whom) -> bool {
    let message = match whom {
        Whom::AllShared => &to.shell.server.one,
        Whom::One | Whom::OneShared => &to.shell.server.zero,
    };
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
