//! All keys of a database, to be looked at some at a time.

use super::Locks;
use crate::lock::table::database::Named;
use crate::lock::table::names;
use crate::lock::{Bytes, Key};

/// Behind those that were looked at, on the way from the last to the first.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    record: usize,
    entry: names::Place,
}

impl Place {
    pub const END: Self = Self {
        record: usize::MAX,
        entry: names::Place::END,
    };
}

impl Locks {
    /// The databases of which anything is known.
    pub fn databases(&self) -> Vec<i32> {
        let tables = self.tables.iter();
        let known =
            tables.filter(|(_, table)| !table.entries.is_empty() || table.records.len() > 0);
        known.map(|(db, _)| db).collect()
    }

    /// The stamp of a sweep that begins now: it means all entries there are.
    pub fn begin_sweep(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    /// The name before a place of a database, which moves there, with its stamp.
    pub fn before(&self, db: i32, place: &mut Place) -> Option<(Key, u32)> {
        let table = self.tables.get(db)?;
        // Records first: one that becomes an entry meanwhile is among those.
        let record = table.records.before(&mut place.record);
        let (name, stamp) = match record {
            Some(record) => (Bytes::from(record.name()), record.stamp),
            None => {
                let (name, entry) = table.entries.before(&mut place.entry)?;
                (name.clone(), entry.stamp)
            }
        };
        Some((Key { db, name }, stamp))
    }

    /// When what is known of a key was made known, or last attended to.
    pub fn stamp(&self, key: &Key) -> Option<u32> {
        match self.kept(key.db, &key.name)? {
            Named::Entry(_, entry) => Some(entry.stamp),
            Named::Record(_, record) => Some(record.stamp),
        }
    }

    /// No sweep so far means the entry any more.
    pub fn restamp(&mut self, key: &Key) {
        let stamp = self.stamp;
        let Some(table) = self.tables.get_mut(key.db) else {
            return;
        };
        if let Some(entry) = table.entries.get_mut(&key.name) {
            entry.stamp = stamp;
            return;
        }
        let row = table.records.find(table.entries.hash(&key.name), &key.name);
        if let Some(record) = row.and_then(|row| table.records.get_mut(row)) {
            record.stamp = stamp;
        }
    }
}
