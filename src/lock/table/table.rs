//! The keys of one database of which more is known than the keyspace tells, and when
//! each of them is due.

use super::entry::Entry;
use super::names::{Names, Place};
use crate::lock::deadlines::Deadlines;
use crate::lock::{Bytes, WallMs};

#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Names<Entry>,
    leases: Deadlines<WallMs, Bytes>,
}

impl Table {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn contains(&self, name: &[u8]) -> bool {
        self.entries.get(name).is_some()
    }

    pub fn names(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().map(|(name, _)| name)
    }

    /// The name as the table has it, to be shared.
    pub fn name(&self, name: &[u8]) -> Option<&Bytes> {
        self.entries.get(name).map(|(name, _)| name)
    }

    /// The entry before a place, which moves there.
    pub fn before(&self, place: &mut Place) -> Option<(&Bytes, &Entry)> {
        self.entries.before(place)
    }

    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        self.entries.get(name).map(|(_, entry)| entry)
    }

    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut Entry> {
        self.entries.get_mut(name)
    }

    /// The entry of a name, made with this stamp if there is none.
    pub fn get_or_new(&mut self, name: &Bytes, stamp: u32) -> &mut Entry {
        self.entries.get_or_insert(name, || Entry::new(stamp))
    }

    /// Puts a name that is there under another moment, or under none.
    pub fn set_deadline(&mut self, name: &Bytes, to: Option<WallMs>) {
        if let Some(entry) = self.entries.get_mut(name) {
            let from = std::mem::replace(&mut entry.deadline, to);
            self.leases.change(name, from, to);
        }
    }

    pub fn first_deadline(&self) -> Option<WallMs> {
        self.leases.first()
    }

    /// Up to `most` names whose deadline is before `limit`, earliest first.
    pub fn due(&self, limit: WallMs, most: usize) -> Vec<Bytes> {
        self.leases.before(limit, most)
    }

    /// The same with their moments, and only those behind this pair.
    pub fn due_behind(
        &self,
        behind: Option<&(WallMs, Bytes)>,
        limit: WallMs,
        most: usize,
    ) -> Vec<(WallMs, Bytes)> {
        self.leases.between(behind, limit, most)
    }

    /// Changes an entry that is there, with its deadline gone, and removes it if nothing
    /// of it is worth remembering then.
    pub fn change<T>(&mut self, name: &Bytes, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let entry = self.entries.get_mut(name)?;
        let from = entry.deadline.take();
        let result = change(entry);
        if entry.is_idle() {
            self.tidy(name);
        }
        self.leases.change(name, from, None);
        Some(result)
    }

    /// Forgets a name if nothing of it is worth remembering.
    pub fn tidy(&mut self, name: &[u8]) {
        self.entries.remove_if(name, Entry::is_idle);
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Entry)> {
        self.entries.iter()
    }

    #[cfg(test)]
    pub fn deadlines(&self) -> usize {
        self.leases.len()
    }
}
