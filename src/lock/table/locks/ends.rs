//! When something ends, as far as is known.

use std::collections::BTreeMap;

use super::Locks;
use crate::lock::table::database::Named;
use crate::lock::{Bytes, Key, Now, Owner, WakeTarget, WallMs};

impl Locks {
    /// When the first lease ends.
    pub fn first_deadline(&self) -> Option<WallMs> {
        let each = self.tables.values().flat_map(|table| {
            let record = table.records.first().map(|(_, record)| record.ends);
            [table.leases.first(), record]
        });
        each.flatten().min()
    }

    /// The locks on which something has ended, at most so many, earliest first.
    pub fn due(&mut self, now: Now, most: usize) -> Vec<Key> {
        let due = self.due_behind(&BTreeMap::new(), now, most);
        due.into_iter().map(|(_, key)| key).collect()
    }

    /// The same with their moments, and of each database only those behind this one.
    pub fn due_behind(
        &mut self,
        behind: &BTreeMap<i32, (WallMs, Bytes)>,
        now: Now,
        most: usize,
    ) -> Vec<(WallMs, Key)> {
        let (limit, mut over) = (now.wall_ms(), Vec::new());
        for (db, table) in self.tables.iter_mut() {
            let room = most.saturating_sub(over.len());
            table.promote_due(limit, room);
            let due = table.leases.between(behind.get(&db), limit, room);
            let due = due.into_iter();
            over.extend(due.map(|(at, name)| (at, Key { db, name })));
        }
        over
    }

    /// When an owner's lease ends, as far as is known.
    pub fn lease_end(&self, key: &Key, owner: &Owner) -> Option<WallMs> {
        let entry = self.get(key)?;
        let Some(shared) = &entry.shared else {
            return entry.deadline;
        };
        match shared.hold(owner)? {
            hold if hold.writes => shared.expires,
            hold => hold.end(shared.expires),
        }
    }

    /// Puts the key under another moment of the index: the one at which something of
    /// a lock ends.
    pub fn set_deadline(&mut self, key: &Key, to: Option<WallMs>) {
        // Nothing is remembered of a key only because nothing ends there.
        if to.is_none() && self.get(key).is_none() {
            return;
        }
        self.believe(key);
        let table = self.tables.get_or_new(key.db);
        let (entry, _, leases) = table.entry(&key.name, self.stamp);
        let was_heard = entry.is_heard();
        let from = std::mem::replace(&mut entry.deadline, to);
        self.heard.change(&key.name, was_heard, entry.is_heard());
        if from != to {
            entry.foreign = false;
            leases.change(&key.name, from, to);
        }
    }

    /// The same for a key that is no lock, and is waited for.
    pub fn set_foreign_deadline(&mut self, key: &Key, to: Option<WallMs>) {
        self.set_deadline(key, to);
        self.get_or_new(key).foreign = to.is_some();
    }

    /// The key could be a lock that ends then, and whom its end wakes; `None`: it is not
    /// presumed any more. What is known of a key is known still.
    pub fn set_presumed(&mut self, key: &Key, to: Option<(WakeTarget, WallMs)>) {
        match self.kept(key.db, &key.name) {
            Some(Named::Record(..)) => return,
            Some(Named::Entry(_, entry)) if !entry.is_presumed() => return,
            Some(Named::Entry(..)) | None => {}
        }
        self.set_deadline(key, to.map(|(_, at)| at));
        if let Some((whom, _)) = to {
            self.get_or_new(key);
            self.change(key, |entry| entry.presumed = Some(whom));
            self.presumed = self.presumed.saturating_add(1);
        }
        self.tidy(key);
    }

    /// How many are presumed.
    pub fn presumed(&self) -> usize {
        self.presumed
    }

    /// What was presumed is known from now on.
    pub(super) fn believe(&mut self, key: &Key) {
        if self.presumed > 0 {
            let presumed = self.change(key, |entry| entry.presumed.take()).flatten();
            let one = usize::from(presumed.is_some());
            self.presumed = self.presumed.saturating_sub(one);
        }
    }
}
