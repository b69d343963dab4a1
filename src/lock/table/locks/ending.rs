//! Locks that end with very many holders.

use super::Locks;
use crate::lock::table::endings::{Ended, Ending, Why};
use crate::lock::table::entry::Entry;
#[cfg(test)]
use crate::lock::table::hold::Hold;
use crate::lock::Key;

impl Locks {
    /// Whether the lock has so many holders that it is to end in pieces.
    pub fn are_many(&self, key: &Key) -> bool {
        self.get(key).is_some_and(Entry::are_many)
    }

    /// Who holds the lock holds it no more, for this reason: what follows for each of those who
    /// do so with others is to come. Whether lease keys go too.
    pub fn end_in_pieces(&mut self, key: &Key, why: Why, leases: bool) {
        if let Some(shared) = self.take_out(key, false).shared {
            self.endings.put(Ending::new(key, shared, (why, leases)));
        }
    }

    pub fn is_any_ending(&self) -> bool {
        !self.endings.is_empty()
    }

    /// Whether for the next of those who have ended something is to be written.
    pub fn is_ending_written(&self) -> bool {
        self.endings.writes()
    }

    /// The next of those who have ended.
    pub fn next_ended(&mut self) -> Option<Ended> {
        let ended = self.endings.next();
        self.count_ended(ended)
    }

    /// An owner that has ended, and is to be again.
    pub fn take_ended(&mut self, key: &Key, owner: &[u8]) -> Option<Ended> {
        if self.endings.is_empty() {
            return None;
        }
        let ended = self.endings.take(key, owner);
        self.count_ended(ended)
    }

    /// Nothing is to be written for them any more.
    pub fn end_unwritten(&mut self) {
        self.endings.write_nothing();
    }

    /// Those of them that are left: what the lock was called, and the hold.
    #[cfg(test)]
    pub fn ending(&self) -> impl Iterator<Item = (&Key, &Hold)> {
        self.endings.holds().map(|(key, _, hold)| (key, hold))
    }

    /// Two databases were exchanged.
    pub fn swap(&mut self, one: i32, other: i32) {
        self.tables.swap(one, other);
        self.endings.swap(one, other);
    }

    fn count_ended(&mut self, ended: Option<Ended>) -> Option<Ended> {
        let of = ended.as_ref()?;
        let since = of.hold.since();
        self.tables.get_or_new(of.db).held.ends(since);
        self.over.extend(since);
        ended
    }
}
