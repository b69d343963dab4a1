//! Watched leases that run out while nothing may be written. The lock is looked at
//! once it may be again; but an open connection means a lock that is held, and to
//! close one needs no write.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bytes, Core, Decision, Effect, Key};

/// How far that was looked after, since something was last written.
#[derive(Clone, Debug, Default)]
pub struct Lapsed {
    /// The leases of each database were gone through up to here.
    upto: BTreeMap<i32, (i64, Bytes)>,
    /// What is watched on the locks that it has, by when it ends: readers of one
    /// lock end one by one.
    ends: BTreeSet<(i64, Key, Bytes)>,
}

impl Core {
    fn watched_on(&self, key: &Key) -> Vec<Bytes> {
        let Some(entry) = self.entry(key) else {
            return Vec::new();
        };
        let shared = entry.shared.iter().flat_map(|shared| shared.parties());
        let holds = entry.plain.iter().chain(shared.map(|party| &party.hold));
        holds
            .filter(|hold| hold.watch.is_some())
            .map(|hold| hold.owner.clone())
            .collect()
    }
}

/// Closes the connections that watch a lease which is over. Looks at so many at
/// most, and at each once; whether there are more. The lease is not renewed any more.
pub fn let_lapse(d: &mut Decision<'_>, most: usize) -> bool {
    let now_ms = d.now.wall_ms();
    let mut over = Vec::new();
    for (db, table) in &d.core.tables {
        let behind = d.core.lapsed.upto.get(db);
        let room = most.saturating_sub(over.len());
        let due = table.due_behind(behind, now_ms, room).into_iter();
        over.extend(due.map(|(at, name)| (at, Key { db: *db, name })));
    }
    let is_full = over.len() == most;
    for (at, key) in over {
        for owner in d.core.watched_on(&key) {
            let end = d.core.lease_end(&key, &owner);
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
    let over = d.core.lease_end(key, owner);
    if over.is_none_or(|at| at >= d.now.wall_ms()) {
        return;
    }
    let held = d
        .core
        .entry_mut(key)
        .and_then(|entry| entry.hold_mut(owner));
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
