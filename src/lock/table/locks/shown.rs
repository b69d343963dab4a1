//! What operators are told of all locks, without a look at all of them: how many are held,
//! since when, and a page of them.

use std::borrow::Cow;
use std::ops::Bound;

use super::Locks;
use crate::lock::table::database::Named;
use crate::lock::table::entry::Entry;
use crate::lock::table::hold::Hold;
use crate::lock::table::names::page;
use crate::lock::{Bytes, WallUs};

/// Room for so many holds that are over is kept.
const OVER: usize = 1024;

impl Locks {
    /// A hold that was taken away is over.
    pub fn is_over(&mut self, hold: &Hold) {
        self.over.extend(hold.since());
    }

    /// Since when the holds were that are over, of which that is known: each once.
    pub fn take_over(&mut self) -> impl Iterator<Item = WallUs> + '_ {
        if self.over.is_empty() {
            self.over.shrink_to(OVER);
        }
        self.over.drain(..)
    }

    /// How many locks somebody is known to hold.
    pub fn held(&self) -> usize {
        let each = self.tables.values().map(|table| table.held.locks);
        each.fold(0, usize::saturating_add)
    }

    /// Since when the oldest known hold is, ms.
    pub fn oldest(&self) -> Option<i64> {
        let each = self.tables.values();
        each.filter_map(|table| table.held.first()).min()
    }

    /// What tells the order of [`from`](Self::from) from that of another table, or of
    /// another run. `None`: nothing was ever known of this database.
    pub fn order(&self, db: i32) -> Option<u64> {
        self.tables.get(db).map(|table| table.entries.order())
    }

    /// At most so many keys of a database with what is known of them, from this name on,
    /// or behind it.
    pub fn from(&self, db: i32, begin: Bound<&[u8]>, most: usize) -> Vec<(Bytes, Cow<'_, Entry>)> {
        let Some(table) = self.tables.get(db) else {
            return Vec::new();
        };
        let part = |number| {
            let entries = table.entries.of_part(number);
            let entries = entries.map(|(name, entry)| Named::Entry(name, entry));
            let records = table.records.part(number);
            entries.chain(records.map(|record| Named::Record(0, record)))
        };
        let first = table.entries.first_part(begin);
        let found = page((first, begin), most, part, Named::name).into_iter();
        let known = found.map(|kept| match kept {
            Named::Entry(name, entry) => (name.clone(), Cow::Borrowed(entry)),
            Named::Record(_, record) => (record.name().into(), Cow::Owned(record.to_entry())),
        });
        known.collect()
    }
}
