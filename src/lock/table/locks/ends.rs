//! When something ends, as far as is known.

use std::collections::BTreeMap;

use super::Locks;
use crate::lock::{Bytes, Key, Now, Owner, WallMs};

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
        match shared.party(owner)? {
            party if party.writes => shared.expires,
            party => party.end(shared.expires),
        }
    }
}
