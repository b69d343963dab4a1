//! The keys of one database of which more is known than the keyspace tells, and when
//! each of them is due.

use indexmap::map::Entry as Slot;
use indexmap::IndexMap;

use super::deadlines::Deadlines;
use super::entry::Entry;
use super::Bytes;

/// Entries stand in a list, so that all of them can be looked at a few at a time: from
/// the end, for one that is removed leaves its place to the last one.
#[derive(Clone, Debug)]
pub struct Table {
    entries: IndexMap<Bytes, Entry>,
    leases: Deadlines<Bytes>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: IndexMap::new(),
            leases: Deadlines::new(Bytes::from(&b""[..])),
        }
    }
}

impl Table {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn contains(&self, name: &[u8]) -> bool {
        self.entries.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.keys()
    }

    /// The name as the table has it, to be shared.
    pub fn name(&self, name: &[u8]) -> Option<&Bytes> {
        self.entries.get_key_value(name).map(|(name, _)| name)
    }

    pub fn at(&self, place: usize) -> Option<(&Bytes, &Entry)> {
        self.entries.get_index(place)
    }

    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut Entry> {
        self.entries.get_mut(name)
    }

    /// The entry of a name, made with this stamp if there is none.
    pub fn get_or_new(&mut self, name: &Bytes, stamp: u32) -> &mut Entry {
        let slot = self.entries.entry(name.clone());
        slot.or_insert_with(|| Entry::new(stamp))
    }

    /// Puts a name that is there under another moment, or under none.
    pub fn set_deadline(&mut self, name: &Bytes, to: Option<i64>) {
        if let Some(entry) = self.entries.get_mut(name) {
            let from = std::mem::replace(&mut entry.deadline, to);
            self.leases.change(name, from, to);
        }
    }

    /// The wall-clock ms of the first deadline.
    pub fn first_deadline(&self) -> Option<i64> {
        self.leases.first()
    }

    /// Up to `most` names whose deadline is before this wall-clock ms, earliest first.
    pub fn due(&self, limit: i64, most: usize) -> Vec<Bytes> {
        self.leases.before(limit, most)
    }

    /// The same with their moments, and only those behind this pair.
    pub fn due_behind(
        &self,
        behind: Option<&(i64, Bytes)>,
        limit: i64,
        most: usize,
    ) -> Vec<(i64, Bytes)> {
        self.leases.between(behind, limit, most)
    }

    /// Changes an entry that is there, with its deadline gone, and removes it if nothing
    /// of it is worth remembering then.
    pub fn change<T>(&mut self, name: &Bytes, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let Slot::Occupied(mut slot) = self.entries.entry(name.clone()) else {
            return None;
        };
        let entry = slot.get_mut();
        let from = entry.deadline.take();
        let result = change(entry);
        if entry.is_idle() {
            slot.swap_remove();
            self.give_back();
        }
        self.leases.change(name, from, None);
        Some(result)
    }

    /// Forgets a name if nothing of it is worth remembering.
    pub fn tidy(&mut self, name: &[u8]) {
        if self.entries.get(name).is_some_and(Entry::is_idle) {
            self.entries.swap_remove(name);
            self.give_back();
        }
    }

    /// Gives memory back after a crowd of locks has gone; seldom enough to cost nothing.
    fn give_back(&mut self) {
        const ROOM: usize = 1024;
        let (room, len) = (self.entries.capacity(), self.entries.len());
        if room > ROOM && len < room / 8 {
            self.entries.shrink_to(len.saturating_mul(2).max(ROOM / 2));
        }
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
