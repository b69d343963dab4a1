//! What is kept of the names of one database: an entry, or of a lock that is only held a record.
//! A record becomes an entry as soon as more is to be known of it; no name is ever in both.

use super::entry::Entry;
use super::held::Held;
use super::names::Names;
use super::records::{Record, Records};
use crate::lock::deadlines::Deadlines;
use crate::lock::{Bytes, Token, WallMs};

/// The keys of one database.
#[derive(Clone, Debug, Default)]
pub struct Database {
    pub entries: Names<Entry>,
    /// Locks that are only held.
    pub records: Records,
    /// The moment under which each of them stands here is its `deadline`.
    pub leases: Deadlines<WallMs, Bytes>,
    pub held: Held,
}

impl Database {
    /// What is kept of a name, in one way or the other.
    pub fn kept(&self, name: &[u8]) -> Option<Named<'_>> {
        let hash = self.entries.hash(name);
        let record = || {
            let row = self.records.find(hash, name)?;
            Some(Named::Record(row, self.records.get(row)?))
        };
        let entry = self.entries.by_hash(hash, name);
        entry
            .map(|(name, entry)| Named::Entry(name, entry))
            .or_else(record)
    }

    /// More is to be known of a lock than a record keeps.
    fn promote(&mut self, row: u32) {
        let Some(record) = self.records.remove(row) else {
            return;
        };
        let (name, entry) = (Bytes::from(record.name()), record.to_entry());
        self.leases.change(&name, None, entry.deadline);
        self.entries.get_or_insert(&name, || entry);
    }

    /// The same, if it is by this name.
    fn promote_any(&mut self, name: &[u8]) {
        if self.records.len() > 0 {
            let row = self.records.find(self.entries.hash(name), name);
            row.into_iter().for_each(|row| self.promote(row));
        }
    }

    /// Those of which more is to be known, for they end before this: at most so many.
    pub fn promote_due(&mut self, limit: WallMs, most: usize) {
        for _ in 0..most {
            match self.records.first() {
                Some((row, record)) if record.ends < limit => self.promote(row),
                _ => return,
            }
        }
    }

    /// What is known of a key, to be changed.
    pub fn known(&mut self, name: &[u8]) -> Option<Parts<'_>> {
        self.promote_any(name);
        let entry = self.entries.get_mut(name)?;
        Some((entry, &mut self.held, &mut self.leases))
    }

    /// The same; from now on there is something.
    pub fn entry(&mut self, name: &Bytes, stamp: u32) -> Parts<'_> {
        self.promote_any(name);
        let entry = self.entries.get_or_insert(name, || Entry::new(stamp));
        (entry, &mut self.held, &mut self.leases)
    }
}

/// What is known of a key, and what is kept beside that.
pub type Parts<'a> = (
    &'a mut Entry,
    &'a mut Held,
    &'a mut Deadlines<WallMs, Bytes>,
);

/// What is kept of a name.
pub enum Named<'a> {
    Entry(&'a Bytes, &'a Entry),
    Record(u32, &'a Record),
}

/// What is known of a lock that somebody holds once.
#[derive(Clone, Copy, Debug)]
pub struct OnlyHeld {
    /// Of its record, until something changes here: nobody waits for it.
    pub row: Option<u32>,
    pub token: Option<Token>,
    pub ends: WallMs,
}

impl Named<'_> {
    pub fn name(&self) -> &[u8] {
        match self {
            Self::Entry(name, _) => name,
            Self::Record(_, record) => record.name(),
        }
    }
}
