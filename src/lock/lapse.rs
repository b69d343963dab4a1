//! Watched leases that run out while nothing may be written. The lock is looked at
//! once it may be again; but an open connection means a lock that is held, and to
//! close one needs no write.

use std::collections::{BTreeMap, BTreeSet};

use super::moved;
use super::{Bytes, Decision, Effect, Key};

/// How far that was looked after, since something was last written.
#[derive(Clone, Debug, Default)]
pub struct Lapsed {
    /// The leases of each database were gone through up to here.
    upto: BTreeMap<i32, (i64, Bytes)>,
    /// What is watched on the locks that it has, by when it ends: readers of one
    /// lock end one by one.
    ends: BTreeSet<(i64, Key, Bytes)>,
}

/// Closes the connections that watch a lease which is over. Looks at so many at
/// most, and at each once; whether there are more. The lease is not renewed any more.
pub fn let_lapse(d: &mut Decision<'_>, most: usize) -> bool {
    let now_ms = d.now.wall_ms();
    let over = d.core.locks.due_behind(&d.core.lapsed.upto, d.now, most);
    let is_full = over.len() == most;
    for (at, key) in over {
        for owner in moved::watched_on(d.core, &key) {
            let end = d.core.locks.lease_end(&key, &owner);
            let end = end.map(|end| (end, key.clone(), owner));
            d.core.lapsed.ends.extend(end);
        }
        d.core.lapsed.upto.insert(key.db, (at, key.name));
    }
    for _ in 0..most {
        let first = d.core.lapsed.ends.first();
        if first.is_none_or(|(end, ..)| *end >= now_ms) {
            return is_full;
        }
        if let Some((_, key, owner)) = d.core.lapsed.ends.pop_first() {
            lapsed(d, &key, &owner);
        }
    }
    true
}

fn lapsed(d: &mut Decision<'_>, key: &Key, owner: &Bytes) {
    let over = d.core.locks.lease_end(key, owner);
    if over.is_none_or(|at| at >= d.now.wall_ms()) {
        return;
    }
    let held = d.core.locks.hold_mut(key, owner);
    let Some(watch) = held.and_then(|hold| hold.watch.as_mut()) else {
        return;
    };
    let next = watch.next.take();
    for client in watch.clients() {
        d.out.push(Effect::Close { client });
    }
    d.core
        .renewals
        .change(&(key.clone(), owner.clone()), next, None);
}
