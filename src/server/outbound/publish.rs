//! The wake-up message for those who wait by subscription, as Redisson does: they
//! subscribe to a channel named after the lock and try again when a message comes.

use super::fair_queue;
use super::reach::{anybody_waits, has_subscriber, waited_at};
use super::replication::Replication;
use crate::config;
use crate::lock::{Key, Listening, WakeTarget};
use crate::redisson;
use crate::server::sys::{self, Text, To};

/// Wakes those who wait by subscription, for the lock was left free. Returns whether anybody
/// waits so, if that matters to the core.
pub fn wake(to: &Replication<'_>, key: &Key, target: WakeTarget) -> Option<(Key, Listening)> {
    let listens = || anybody_waits(to.ctx, to.shell.server.cluster);
    if can_be_late(to, key) && to.shell.unpublished.put_off(listens) {
        return None;
    }
    let shared = target != WakeTarget::One;
    let reaches = |channel: &[u8]| publish(to, channel, target) && has_subscriber(to, channel);
    find(to, key, shared, Listening::Woken { shared }, reaches)
}

/// The same, but for those alone who subscribe on this server: the key may never have been
/// a lock. Who subscribes to a replica tries again when the lease ends that it knows.
pub fn wake_listeners(
    to: &Replication<'_>,
    key: &Key,
    target: WakeTarget,
) -> Option<(Key, Listening)> {
    let shared = target != WakeTarget::One;
    let reaches = |channel: &[u8]| has_subscriber(to, channel) && publish(to, channel, target);
    find(to, key, shared, Listening::Woken { shared }, reaches)
}

/// Whether anybody waits for the lock by subscription, without a message; `None`:
/// nobody does, and none was known to.
pub fn listening(to: &Replication<'_>, key: &Key, shared: bool) -> Option<(Key, Listening)> {
    let listens = || anybody_waits(to.ctx, to.shell.server.cluster);
    if can_be_late(to, key) && !to.shell.unpublished.are_at_once(listens) {
        return None;
    }
    let waits = |channel: &[u8]| has_subscriber(to, channel);
    find(to, key, shared, Listening::Waiting { shared }, waits)
}

/// Whether it can be left for the next beat: who subscribes does so on this server, and
/// nobody is known to.
fn can_be_late(to: &Replication<'_>, key: &Key) -> bool {
    let known = to.shell.core.ask(|core| core.knows_subscribers(key));
    !to.shell.situation.replicas.get() && known == Some(false)
}

/// Wakes all who wait by subscription, if messages were put off.
pub fn catch_up(to: &Replication<'_>) {
    if !to.shell.unpublished.take() {
        return;
    }
    for channel in waited_at(to.ctx, to.shell.server.cluster) {
        if let Some(shared) = redisson::is_channel(&channel) {
            let target = match shared {
                true => WakeTarget::AllShared,
                false => WakeTarget::One,
            };
            publish(to, &channel, target);
        }
    }
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
    let known = to.shell.core.ask(|core| core.knows_subscribers(key));
    known?.then(|| (key.clone(), Listening::Nobody))
}

/// Publishes. Returns whether it reached anybody on this server.
fn publish(to: &Replication<'_>, channel: &[u8], target: WakeTarget) -> bool {
    let message = match target {
        WakeTarget::AllShared => &to.shell.server.one,
        WakeTarget::One | WakeTarget::OneShared => &to.shell.server.zero,
    };
    let Some(channel) = Text::new(channel) else {
        return false;
    };
    let cluster = to.shell.server.cluster;
    let receivers = sys::publish(to.ctx, cluster, &channel, message);
    // The call above reaches only subscribers of this server, outside a cluster.
    if !cluster && to.shell.situation.replicas.get() {
        let args = [&channel, message];
        if to.send(To::Replicas, c"PUBLISH", args, None).is_none() {
            to.ctx
                .warn("rlock: the server did not replicate a wake-up message");
        }
    }
    receivers > 0
}
