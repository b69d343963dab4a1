//! What is known of a key's holders is taken away, for their holds are over, or go by another
//! name.

use super::Locks;
use crate::lock::table::entry::Holders;
use crate::lock::table::hold::Hold;
use crate::lock::table::records::Record;
use crate::lock::Key;

impl Locks {
    /// Forgets who held the key and until when. Its waiters stay. The holds that have a
    /// watch.
    pub fn forget_holders(&mut self, key: &Key) -> Vec<Hold> {
        if let Some((row, _)) = self.record(key.db, &key.name) {
            self.drop_record(key.db, row);
            return Vec::new();
        }
        let Holders { plain, shared, .. } = self.end_holders(key);
        let others = shared.iter().flat_map(|shared| shared.holds());
        let others = others.filter(|hold| hold.watch.is_some()).cloned();
        let plain = plain.filter(|hold| hold.watch.is_some());
        plain.into_iter().chain(others).collect()
    }

    /// Takes away what is known of a key's holders, whose holds are over.
    pub fn end_holders(&mut self, key: &Key) -> Holders {
        let holders = self.take_holders(key);
        let shared = holders.shared.iter();
        let holds = shared.flat_map(|shared| shared.holds());
        let all = holders.plain.iter().chain(holds);
        self.over.extend(all.filter_map(|hold| hold.since()));
        holders
    }

    /// Takes away what is known of a key's holders, to be put to another.
    pub fn take_holders(&mut self, key: &Key) -> Holders {
        self.take_out(key, true)
    }

    /// A lock that was only held is over.
    pub fn drop_record(&mut self, db: i32, row: u32) {
        if let Some(record) = self.take_record(db, row) {
            self.over.push(record.begun.since);
        }
    }

    fn take_record(&mut self, db: i32, row: u32) -> Option<Record> {
        let table = self.tables.get_mut(db)?;
        let record = table.records.remove(row)?;
        table.held.lock(true, false);
        table.held.ends(Some(record.begun.since));
        Some(record)
    }

    /// The same; `all_end`: none of their holds goes on.
    pub(super) fn take_out(&mut self, key: &Key, all_end: bool) -> Holders {
        if let Some((row, _)) = self.record(key.db, &key.name) {
            let record = self.take_record(key.db, row);
            let plain = record.as_ref().map(Record::hold);
            return Holders {
                deadline: record.map(|record| record.ends),
                plain,
                ..Holders::default()
            };
        }
        let Some(table) = self.tables.get_mut(key.db) else {
            return Holders::default();
        };
        let (mut holders, mut from) = (Holders::default(), None);
        table.entries.remove_if(&key.name, |entry| {
            let was_heard = entry.is_heard();
            from = entry.deadline.take();
            let was_foreign = std::mem::take(&mut entry.foreign);
            if entry.is_held() {
                table.held.lock(true, false);
                let plain = entry.plain.iter();
                let shared = entry.shared.iter().filter(|_| all_end);
                let holds = shared.flat_map(|shared| shared.holds());
                let all = plain.chain(holds);
                table.held.all_end(all);
            }
            holders = Holders {
                plain: entry.plain.take(),
                shared: entry.shared.take(),
                deadline: from.filter(|_| !was_foreign),
                presumed: entry.presumed.take(),
            };
            self.heard.change(&key.name, was_heard, entry.is_heard());
            entry.is_idle()
        });
        table.leases.change(&key.name, from, None);
        let was_presumed = usize::from(holders.presumed.is_some());
        self.presumed = self.presumed.saturating_sub(was_presumed);
        let was_shared = holders.shared.is_some();
        self.lengths.change(key.name.len(), was_shared, false);
        holders
    }
}
