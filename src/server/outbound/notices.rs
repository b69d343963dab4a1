//! Sends what follows from a decision of the core, when all its writes are done (`write`): the
//! keyspace events, the wake-ups, the replies. Any of these can run somebody's
//! callback, which may change a key, so no key of ours may be open.

use redis_module::NotifyEvent;

use super::replication::Replication;
use super::{answers, messages, publish};
use crate::lock::{self, Key, Listening, Notice, Notices, Write};
use crate::redisson;
use crate::server::sys::{self, FirstArgs, KeyspaceEvent, Selected};

/// What was found out about those who wait by subscription. The core gets it when all else
/// is done.
pub type ListenersFound = Vec<(Key, Listening)>;

/// Sends the notices to those whom they are for, in the order of the decisions.
pub fn send(to: &Replication<'_>, given: FirstArgs<'_>, notices: &mut Notices) -> ListenersFound {
    let Replication { shell, ctx, .. } = *to;
    let mut found = ListenersFound::new();
    let mut any_for_clients = false;
    for notice in notices.iter() {
        match notice {
            Notice::Wake { key, target } => found.extend(publish::wake(to, key, *target)),
            Notice::WakeListeners { key, target } => {
                found.extend(publish::wake_listeners(to, key, *target));
            }
            Notice::WhoListens { key, shared } => {
                found.extend(publish::listening(to, key, *shared));
            }
            Notice::Wrote { key, write } => emit_for(to, given, key, write),
            Notice::Event { key, event } => emit(to, given, key, &[of_our_own(*event)]),
            Notice::Answer { .. } | Notice::Wanted { .. } | Notice::Lost(_) => {
                any_for_clients = true;
            }
        }
    }
    if !any_for_clients {
        notices.clear();
        return found;
    }
    let mut connections = messages::ConnectionCache::default();
    for notice in notices.drain(..) {
        match notice {
            Notice::Answer {
                waiter,
                to: Some(address),
                outcome,
                wanted,
            } => messages::settle(to, waiter, address, (&outcome, wanted)),
            Notice::Wanted { address, closes } => {
                messages::wanted(to, address, closes, &mut connections);
            }
            Notice::Answer {
                waiter, outcome, ..
            } => answers::settle(shell, ctx, waiter, outcome),
            Notice::Lost(loss) => messages::lost(to, loss, &mut connections),
            _ => {}
        }
    }
    found
}

/// Emits the keyspace events of a write.
fn emit_for(to: &Replication<'_>, given: FirstArgs<'_>, key: &Key, write: &Write) {
    let events: &[KeyspaceEvent] = match write {
        Write::Take { .. } => &[HSET, EXPIRE],
        Write::HandOver { .. } => &[HSET, HDEL, EXPIRE],
        Write::Count { holds, by, .. } if holds == by => &[HSET],
        Write::Count { .. } => &[HINCRBY],
        Write::Drop { .. } => &[HDEL],
        Write::SetMode(_) | Write::SetPool(_) | Write::Permit { held: Some(_), .. } => &[HSET],
        Write::Permit { pool: Some(_), .. } => &[HSET, HDEL],
        Write::Permit { .. } => &[HDEL],
        Write::Lease { at: Some(_), .. } | Write::Fence { until: Some(_), .. } => &[SET, EXPIRE],
        Write::Lease { at: None, .. } | Write::Fence { .. } => &[SET],
        Write::LeaseAt { .. } | Write::ExpireAt(_) => &[EXPIRE],
        Write::EndLease { .. } | Write::Delete => &[DEL],
    };
    let name = match write {
        Write::Lease { owner, index, .. }
        | Write::LeaseAt { owner, index, .. }
        | Write::EndLease { owner, index } => redisson::lease_key(&key.name, owner, *index),
        Write::Fence { .. } => redisson::counter(&key.name),
        _ => return emit(to, given, key, events),
    };
    emit(to, given, &Key::new(key.db, &name), events);
}

// The server's own events, which its handles do not emit by themselves.
const HSET: KeyspaceEvent = (NotifyEvent::HASH, c"hset");
const HINCRBY: KeyspaceEvent = (NotifyEvent::HASH, c"hincrby");
const HDEL: KeyspaceEvent = (NotifyEvent::HASH, c"hdel");
const SET: KeyspaceEvent = (NotifyEvent::STRING, c"set");
const EXPIRE: KeyspaceEvent = (NotifyEvent::GENERIC, c"expire");
const DEL: KeyspaceEvent = (NotifyEvent::GENERIC, c"del");

fn of_our_own(event: lock::Event) -> KeyspaceEvent {
    let name = match event {
        lock::Event::Acquired => c"rlock.acquired",
        lock::Event::Released => c"rlock.released",
        lock::Event::Renewed => c"rlock.renewed",
        lock::Event::Expired => c"rlock.expired",
        lock::Event::Forced => c"rlock.forced",
        lock::Event::Evicted => c"rlock.evicted",
    };
    (NotifyEvent::MODULE, name)
}

/// Emits keyspace events on a key.
fn emit(to: &Replication<'_>, given: FirstArgs<'_>, key: &Key, events: &[KeyspaceEvent]) {
    let Replication { shell, ctx, .. } = *to;
    let Some(name) = given.text(&key.name) else {
        return;
    };
    let _db = Selected::new(ctx, key.db);
    for event in events {
        let _emitting = shell.own(key, Some(event.1));
        sys::notify(ctx, *event, &name);
    }
}
