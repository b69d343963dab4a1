//! What must hold of all that is known of locks, for tests.

use super::Locks;
use crate::lock::table::held::Held;
use crate::lock::table::lengths::Lengths;
use crate::lock::table::sieve::Sieve;

impl Locks {
    /// How many moments stand in the index.
    pub fn deadlines(&self) -> usize {
        let each = self.tables.values();
        each.map(|table| table.leases.len() + table.records.len())
            .sum()
    }

    /// Asserts that the index and the lengths are those of the entries.
    pub fn check(&self) {
        let (mut lengths, mut presumed) = (Lengths::default(), 0);
        let mut heard = Sieve::default();
        for (db, table) in self.tables.iter() {
            let (mut due, mut held) = (0, Held::default());
            for (_, _, hold) in self.endings.holds().filter(|(_, its, _)| *its == db) {
                held.begins(hold.since());
            }
            for (name, entry) in table.entries.iter() {
                lengths.change(name.len(), false, entry.shared.is_some());
                heard.change(name, false, entry.is_heard());
                due += usize::from(entry.deadline.is_some());
                held.lock(false, entry.is_held());
                entry.holds().for_each(|hold| held.begins(hold.since()));
                assert!(!entry.is_idle(), "{name:?} is remembered for nothing");
                if entry.is_presumed() {
                    presumed += 1;
                    let any = entry.is_held() || entry.foreign || entry.waited_for;
                    assert!(!any && entry.deadline.is_some(), "{name:?}: {entry:?}");
                }
                if let Some(shared) = entry.shared() {
                    shared.check();
                }
            }
            assert_eq!(table.leases.len(), due);
            table.records.check();
            for record in table.records.iter() {
                assert!(
                    table.entries.get(record.name()).is_none(),
                    "it is kept twice"
                );
                held.lock(false, true);
                held.begins(Some(record.begun.since));
            }
            assert_eq!(table.held, held);
        }
        assert_eq!(self.lengths, lengths);
        assert_eq!(self.heard, heard);
        assert_eq!(self.presumed, presumed);
    }
}
