//! Names with what is known of each, in so many parts that no part is ever large: a
//! hash table grows in one go, and with a million locks in one that would be a stall.

use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, RangeBounds};

use foldhash::quality;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};
use indexmap::IndexMap;

use crate::lock::Bytes;

/// One for each number that a byte can be. A part of a million names grows within a ms.
pub(super) const PARTS: usize = 256;

/// An empty part keeps this much room, for the next name; what is above it is given back as
/// names go.
pub(super) const ROOM: usize = 3;

/// The names of each part stand in a list, so that all of them can be looked at a few
/// at a time: from the end, for one that is removed leaves its place to the last one.
#[derive(Clone, Debug)]
pub struct Names<T> {
    parts: Vec<IndexMap<Bytes, T>>,
    /// And one more, so that there is one for any number.
    last: IndexMap<Bytes, T>,
    /// Its hashes are told to nobody, who could find names by them that are alike.
    hasher: quality::RandomState,
    order: u64,
    len: usize,
    /// There was more than a name for each part: the room of all goes with the last name.
    many: bool,
}

/// Behind those names that were looked at, on the way from the last to the first.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    part: usize,
    left: usize,
}

impl Place {
    pub const END: Self = Self {
        part: PARTS,
        left: 0,
    };
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            parts: std::iter::repeat_with(IndexMap::new)
                .take(PARTS - 1)
                .collect(),
            last: IndexMap::new(),
            hasher: quality::RandomState::default(),
            order: RandomState::new().hash_one(0_u8),
            len: 0,
            many: false,
        }
    }
}

impl<T> Names<T> {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// By what number a name is found here, and in what else goes by it.
    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }

    /// The hash of a name, and its place in its part if it is there.
    fn place(&self, name: &[u8]) -> (u64, Option<usize>) {
        let hash = self.hash(name);
        (hash, self.place_of(hash, name))
    }

    fn place_of(&self, hash: u64, name: &[u8]) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let part = self.part(number(hash)).raw_entry_v1();
        part.index_from_hash(hash, |other| other[..] == *name)
    }

    fn part(&self, number: usize) -> &IndexMap<Bytes, T> {
        self.parts.get(number).unwrap_or(&self.last)
    }

    fn part_mut(&mut self, number: usize) -> &mut IndexMap<Bytes, T> {
        self.parts.get_mut(number).unwrap_or(&mut self.last)
    }

    pub fn get(&self, name: &[u8]) -> Option<(&Bytes, &T)> {
        self.by_hash(self.hash(name), name)
    }

    pub(super) fn by_hash(&self, hash: u64, name: &[u8]) -> Option<(&Bytes, &T)> {
        let at = self.place_of(hash, name);
        self.part(number(hash)).get_index(at?)
    }

    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        let (hash, at) = self.place(name);
        let (_, known) = self.part_mut(number(hash)).get_index_mut(at?)?;
        Some(known)
    }

    /// What is known of a name, or this from now on.
    pub fn get_or_insert(&mut self, name: &Bytes, new: impl FnOnce() -> T) -> &mut T {
        let (hash, at) = self.place(name);
        if at.is_none() {
            self.len = self.len.saturating_add(1);
            self.many |= self.len > PARTS;
        }
        let part = self.part_mut(number(hash)).raw_entry_mut_v1();
        match part.from_hash(hash, |other| other == name) {
            RawEntryMut::Occupied(entry) => entry.into_mut(),
            RawEntryMut::Vacant(entry) => entry.insert_hashed_nocheck(hash, name.clone(), new()).1,
        }
    }

    /// Removes a name if this, which may change what is known of it, is true of it.
    pub fn remove_if(&mut self, name: &[u8], is_over: impl FnOnce(&mut T) -> bool) {
        let (hash, at) = self.place(name);
        let part = self.part_mut(number(hash));
        let known = at.and_then(|at| Some((at, part.get_index_mut(at)?.1)));
        let over = known.and_then(|(at, known)| is_over(known).then_some(at));
        let Some(at) = over else { return };
        part.swap_remove_index(at);
        // As many have gone since it grew as are moved now, or more.
        let (room, len) = (part.capacity(), part.len());
        if room > ROOM && (len == 0 || len < room / 8) {
            part.shrink_to(len.saturating_mul(2));
        }
        self.len = self.len.saturating_sub(1);
        if self.len == 0 && self.many {
            self.many = false;
            self.parts.iter_mut().for_each(|part| part.shrink_to(0));
            self.last.shrink_to(0);
        }
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &T)> {
        self.parts.iter().flatten().chain(&self.last)
    }

    /// Which of the orders in which [`from`](Self::from) goes is this one's: it is drawn
    /// anew for each table.
    pub fn order(&self) -> u64 {
        self.order
    }

    /// In which part a name stands, and where a page begins that begins there.
    pub(super) fn first_part(&self, begin: Bound<&[u8]>) -> usize {
        match begin {
            Bound::Included(name) | Bound::Excluded(name) => number(self.hash(name)),
            Bound::Unbounded => 0,
        }
    }

    /// Those of a part.
    pub(super) fn of_part(&self, number: usize) -> impl Iterator<Item = (&Bytes, &T)> {
        self.part(number).iter()
    }

    /// The name before a place, which moves there. Whatever is added or removed
    /// meanwhile, none that was there all the time is passed over.
    pub fn before(&self, place: &mut Place) -> Option<(&Bytes, &T)> {
        loop {
            let part = self.part(place.part);
            place.left = place.left.min(part.len());
            if let Some(at) = place.left.checked_sub(1) {
                place.left = at;
                return part.get_index(at);
            }
            place.part = place.part.checked_sub(1)?;
            place.left = self.part(place.part).len();
        }
    }
}

/// At most so many from this name on, or behind it, of what stands in parts by name. They come
/// part by part, from the first one in question on, and by name in each, so that a page looks
/// at few names, however many there are.
pub(super) fn page<T, I: Iterator<Item = T>>(
    (first, begin): (usize, Bound<&[u8]>),
    most: usize,
    part: impl Fn(usize) -> I,
    name: impl Fn(&T) -> &[u8],
) -> Vec<T> {
    let mut found = Vec::new();
    for number in first..PARTS {
        let from = match number == first {
            true => begin,
            false => Bound::Unbounded,
        };
        let room = most.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        let bounds = (from, Bound::Unbounded);
        let is_in = |one: &T| RangeBounds::<[u8]>::contains(&bounds, name(one));
        let mut some: Vec<T> = part(number).filter(is_in).collect();
        let in_order = |one: &T, other: &T| name(one).cmp(name(other));
        if let Some(last) = room.checked_sub(1).filter(|last| *last < some.len()) {
            some.select_nth_unstable_by(last, in_order);
        }
        some.truncate(room);
        some.sort_unstable_by(in_order);
        found.extend(some);
    }
    found
}

/// The part of a name with this hash. Its place in the part goes by other bits.
pub(super) fn number(hash: u64) -> usize {
    let [.., byte, _, _, _] = hash.to_le_bytes();
    usize::from(byte)
}

#[cfg(test)]
mod tests;
