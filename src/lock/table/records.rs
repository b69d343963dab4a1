//! Plain locks that are only held: granted once by a request of rlock's, until a known moment,
//! and nothing else is known of them. Most locks are, so of each only a [`Record`] is kept, in one
//! piece beside its name and its owner's.
//!
//! Where more is to be known of one it becomes an [`Entry`]; no name is ever in both.

mod ends;
mod record;
mod rows;

use std::cell::{OnceCell, RefCell};

use hashbrown::HashTable;

use self::ends::Ends;
pub use self::record::Record;
use self::rows::Rows;
use super::entry::Entry;
use super::hold::Begun;
use super::names::{number, PARTS, ROOM};
use crate::lock::{ClientId, WallMs};

/// What is to be known of a new one.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    pub name: &'a [u8],
    pub owner: &'a [u8],
    pub begun: Begun,
    pub client: Option<ClientId>,
    pub ends: WallMs,
    pub stamp: u32,
}

/// Those of one database.
#[derive(Clone, Debug)]
pub struct Records {
    rows: Rows<Record>,
    /// The rows by name, in as many parts as [`Names`](super::names::Names) has.
    parts: Vec<HashTable<u32>>,
    ends: Ends,
    /// There was more than one for each part: the room of all goes with the last one.
    many: bool,
    /// The rows of those that somebody has looked at.
    seen: RefCell<Vec<u32>>,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            rows: Rows::default(),
            parts: vec![HashTable::new(); PARTS],
            ends: Ends::default(),
            many: false,
            seen: RefCell::default(),
        }
    }
}

impl Records {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn get(&self, row: u32) -> Option<&Record> {
        self.rows.get(row)
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut Record> {
        self.let_go_of_seen();
        self.rows.get_mut(row)
    }

    /// What one comes to, for those who look: until something changes here.
    pub fn entry(&self, row: u32) -> Option<&Entry> {
        let record = self.rows.get(row)?;
        if record.seen.get().is_none() {
            self.seen.borrow_mut().push(row);
        }
        Some(record.seen.get_or_init(|| Box::new(record.to_entry())))
    }

    fn let_go_of_seen(&mut self) {
        for row in std::mem::take(self.seen.get_mut()) {
            if let Some(record) = self.rows.get_mut(row) {
                record.seen.take();
            }
        }
    }

    /// The row of a name with this hash.
    pub fn find(&self, hash: u64, name: &[u8]) -> Option<u32> {
        if self.rows.is_empty() {
            return None;
        }
        let is_its = |row: &u32| {
            let known = self.rows.get(*row);
            known.is_some_and(|known| known.hash == hash && known.name() == name)
        };
        self.parts.get(number(hash))?.find(hash, is_its).copied()
    }

    /// Adds one, of whose name nothing is known.
    pub fn insert(&mut self, hash: u64, new: New<'_>) {
        self.let_go_of_seen();
        let row = self.rows.next();
        let Some(part) = self.parts.get_mut(number(hash)) else {
            return;
        };
        let rows = &self.rows;
        let hash_of = |row: &u32| rows.get(*row).map_or(0, |known| known.hash);
        part.insert_unique(hash, row, hash_of);
        self.rows.push(Record {
            names: [new.name, new.owner].concat().into_boxed_slice(),
            len: new.name.len() as u32,
            stamp: new.stamp,
            hash,
            begun: new.begun,
            client: new.client,
            ends: new.ends,
            place: 0,
            seen: OnceCell::new(),
        });
        self.ends.insert(&mut self.rows, row);
        self.many |= self.rows.len() > PARTS;
    }

    /// Takes one away. The last one stands in its row then.
    pub fn remove(&mut self, row: u32) -> Option<Record> {
        self.let_go_of_seen();
        self.ends.remove(&mut self.rows, row);
        let gone = self.rows.swap_remove(row)?;
        if self.many && self.rows.is_empty() {
            *self = Self::default();
            return Some(gone);
        }
        let Some(part) = self.parts.get_mut(number(gone.hash)) else {
            return Some(gone);
        };
        if let Ok(its) = part.find_entry(gone.hash, |other| *other == row) {
            its.remove();
        }
        let last = self.rows.next();
        if let Some(moved) = self.rows.get(row) {
            let part = self.parts.get_mut(number(moved.hash));
            let its = part.and_then(|part| part.find_mut(moved.hash, |other| *other == last));
            its.into_iter().for_each(|its| *its = row);
            self.ends.set(moved.place, row);
        }
        // Only now is each row found by what stands in it.
        self.shrink(number(gone.hash));
        Some(gone)
    }

    /// Gives back the room of a part that most have left.
    fn shrink(&mut self, number: usize) {
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        // As many have gone since it grew as are moved now, or more.
        let (room, len) = (part.capacity(), part.len());
        if room > ROOM && (len == 0 || len < room / 8) {
            let rows = &self.rows;
            let hash_of = |row: &u32| rows.get(*row).map_or(0, |known| known.hash);
            part.shrink_to(len.saturating_mul(2), hash_of);
        }
    }

    /// The one that ends first.
    pub fn first(&self) -> Option<(u32, &Record)> {
        let row = self.ends.first()?;
        Some((row, self.rows.get(row)?))
    }

    /// Those of a part.
    pub fn part(&self, number: usize) -> impl Iterator<Item = &Record> {
        let part = self.parts.get(number).into_iter().flatten();
        part.filter_map(|row| self.rows.get(*row))
    }

    /// The one before a place, which moves there: as in [`Names`](super::names::Names).
    pub fn before(&self, place: &mut usize) -> Option<&Record> {
        *place = (*place).min(self.len()).checked_sub(1)?;
        self.rows.get(u32::try_from(*place).ok()?)
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        (0..self.rows.next()).filter_map(|row| self.rows.get(row))
    }

    /// Asserts that each is found, and stands among the ends where it says.
    #[cfg(test)]
    pub fn check(&self) {
        let named: usize = self.parts.iter().map(HashTable::len).sum();
        assert_eq!((named, self.ends.len()), (self.len(), self.len()));
        for row in 0..self.rows.next() {
            let known = self.rows.get(row).expect("it is there");
            assert_eq!(self.find(known.hash, known.name()), Some(row));
        }
        self.ends.check(&self.rows);
    }
}

#[cfg(test)]
mod tests;
