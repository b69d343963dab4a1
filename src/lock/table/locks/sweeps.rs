//! All keys of a database, to be looked at some at a time.

use super::Locks;
use crate::lock::table::names::Place;
use crate::lock::Key;

impl Locks {
    /// The databases of which anything is known.
    pub fn databases(&self) -> Vec<i32> {
        let tables = self.tables.iter();
        let known = tables.filter(|(_, table)| !table.entries.is_empty());
        known.map(|(db, _)| db).collect()
    }

    /// The stamp of a sweep that begins now: it means all entries there are.
    pub fn begin_sweep(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    /// The name before a place of a database, which moves there, with its stamp.
    pub fn before(&self, db: i32, place: &mut Place) -> Option<(Key, u32)> {
        let (name, entry) = self.tables.get(db)?.entries.before(place)?;
        let name = name.clone();
        Some((Key { db, name }, entry.stamp))
    }

    /// Somebody waits for the key: a sweep with this stamp means it also where nothing was known of
    /// it. What was made known after the sweep had begun it does not mean: that may be a grant,
    /// which a sweep that begins between the two would take for lost.
    pub fn put_before(&mut self, key: &Key, stamp: u32) {
        if self.get(key).is_none() {
            self.set_waited_for(key, true);
            if let Some(entry) = self.get_mut(key) {
                entry.stamp = stamp.wrapping_sub(1);
            }
        }
    }

    /// No sweep so far means the entry any more.
    pub fn restamp(&mut self, key: &Key) {
        let stamp = self.stamp;
        if let Some(entry) = self.get_mut(key) {
            entry.stamp = stamp;
        }
    }
}
