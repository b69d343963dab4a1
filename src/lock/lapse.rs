//! Watched leases that run out while nothing may be written. The lock is looked at
//! once it may be again; but an open connection means a lock that is held, and to
//! close one needs no write.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bytes, Core, Effect, Key, Keyspace, Step};

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
    /// Closes the connections that watch a lease which is over. Looks at so many at
    /// most, and at each once; whether there are more. The lease is not renewed any more.
    pub fn let_lapse<K: Keyspace>(&mut self, step: &mut Step<'_, K>, most: usize) -> bool {
        let now_ms = step.now.wall_ms();
        let mut over = Vec::new();
        for (db, table) in &self.tables {
            let behind = self.lapsed.upto.get(db);
            let room = most.saturating_sub(over.len());
            let due = table.due_behind(behind, now_ms, room).into_iter();
            over.extend(due.map(|(at, name)| (at, Key { db: *db, name })));
        }
        let is_full = over.len() == most;
        for (at, key) in over {
            for owner in self.watched_on(&key) {
                let end = self.lease_end(&key, &owner);
                let end = end.map(|end| (end, key.clone(), owner));
                self.lapsed.ends.extend(end);
            }
            self.lapsed.upto.insert(key.db, (at, key.name));
        }
        for _ in 0..most {
            let first = self.lapsed.ends.first();
            if first.is_none_or(|(end, ..)| *end >= now_ms) {
                return is_full;
            }
            if let Some((_, key, owner)) = self.lapsed.ends.pop_first() {
                self.lapsed(step, &key, &owner);
            }
        }
        true
    }

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

    fn lapsed<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, owner: &Bytes) {
        let over = self.lease_end(key, owner);
        if over.is_none_or(|at| at >= step.now.wall_ms()) {
            return;
        }
        let held = self.entry_mut(key).and_then(|entry| entry.hold_mut(owner));
        let Some(watch) = held.and_then(|hold| hold.watch.as_mut()) else {
            return;
        };
        let next = watch.next.take();
        for client in watch.clients() {
            step.out.push(Effect::Close { client });
        }
        self.renewals
            .change(&(key.clone(), owner.clone()), next, None);
    }
}
