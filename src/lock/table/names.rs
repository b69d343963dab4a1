//! Names with what is known of each, in so many parts that no part is ever large: a
//! hash table grows in one go, and with a million locks in one that would be a stall.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, RangeBounds};

use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};
use indexmap::IndexMap;

use crate::lock::Bytes;

/// One for each number that a byte can be. A part of a million names grows within a ms.
const PARTS: usize = 256;

/// A part keeps this much room; what is above it is given back as names go.
const ROOM: usize = 3;

/// Longer names are looked up each time.
const SHORT: usize = 256;

/// Names are remembered in so many places, by their last byte: the keys of one request often
/// differ in it.
const REMEMBERED: usize = 16;

/// A name that was asked for last, and where it is: a decision asks for one name very
/// often, and to find it is a good part of what a decision costs.
#[derive(Clone, Debug, Default)]
struct Asked {
    name: Vec<u8>,
    hash: u64,
    /// Its place in its part, if it is there: as things were after so many changes.
    at: Option<usize>,
    after: u64,
}

/// The names of each part stand in a list, so that all of them can be looked at a few
/// at a time: from the end, for one that is removed leaves its place to the last one.
#[derive(Clone, Debug)]
pub struct Names<T> {
    parts: Vec<IndexMap<Bytes, T>>,
    /// And one more, so that there is one for any number.
    last: IndexMap<Bytes, T>,
    hasher: RandomState,
    asked: RefCell<[Asked; REMEMBERED]>,
    /// So often was a name added or removed, and one more.
    changes: u64,
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
            hasher: RandomState::new(),
            asked: RefCell::default(),
            changes: 1,
        }
    }
}

impl<T> Names<T> {
    pub fn is_empty(&self) -> bool {
        self.last.is_empty() && self.parts.iter().all(IndexMap::is_empty)
    }

    /// The hash of a name, and its place in its part if it is there.
    fn place(&self, name: &[u8]) -> (u64, Option<usize>) {
        let mut asked = self.asked.borrow_mut();
        let place = |byte: &u8| usize::from(*byte) % REMEMBERED;
        let last = name.last().filter(|_| name.len() <= SHORT);
        let Some(last) = last.and_then(|byte| asked.get_mut(place(byte))) else {
            let hash = self.hasher.hash_one(name);
            return (hash, self.find(name, hash));
        };
        let is_same = last.name == name;
        if is_same && last.after == self.changes {
            return (last.hash, last.at);
        }
        if !is_same {
            last.name.clear();
            last.name.extend_from_slice(name);
            last.hash = self.hasher.hash_one(name);
        }
        last.at = self.find(name, last.hash);
        last.after = self.changes;
        (last.hash, last.at)
    }

    /// A name was added or removed. What is remembered of others has to be found anew.
    fn changed(&mut self, name: &[u8], at: Option<usize>) {
        self.changes = self.changes.wrapping_add(1);
        let mut asked = self.asked.borrow_mut();
        let place = |byte: &u8| usize::from(*byte) % REMEMBERED;
        let last = name.last().and_then(|byte| asked.get_mut(place(byte)));
        if let Some(last) = last.filter(|last| last.name == name) {
            (last.at, last.after) = (at, self.changes);
        }
    }

    fn part(&self, number: usize) -> &IndexMap<Bytes, T> {
        self.parts.get(number).unwrap_or(&self.last)
    }

    fn part_mut(&mut self, number: usize) -> &mut IndexMap<Bytes, T> {
        self.parts.get_mut(number).unwrap_or(&mut self.last)
    }

    pub fn get(&self, name: &[u8]) -> Option<(&Bytes, &T)> {
        let (hash, at) = self.place(name);
        self.part(number(hash)).get_index(at?)
    }

    /// The same for a name that is unknown as a rule: it is not remembered.
    pub fn peek(&self, name: &[u8]) -> Option<&T> {
        let hash = self.hasher.hash_one(name);
        let (_, known) = self.part(number(hash)).get_index(self.find(name, hash)?)?;
        Some(known)
    }

    fn find(&self, name: &[u8], hash: u64) -> Option<usize> {
        let part = self.part(number(hash)).raw_entry_v1();
        part.index_from_hash(hash, |other| other[..] == *name)
    }

    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        let (hash, at) = self.place(name);
        let (_, known) = self.part_mut(number(hash)).get_index_mut(at?)?;
        Some(known)
    }

    /// What is known of a name, or this from now on.
    pub fn get_or_insert(&mut self, name: &Bytes, new: impl FnOnce() -> T) -> &mut T {
        let (hash, at) = self.place(name);
        let part = self.part(number(hash));
        if at.is_none() {
            self.changed(name, Some(part.len()));
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
        self.changed(name, None);
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &T)> {
        self.parts.iter().flatten().chain(&self.last)
    }

    /// Which of the orders in which [`from`](Self::from) goes is this one's: it is drawn
    /// anew for each table.
    pub fn order(&self) -> u64 {
        self.hasher.hash_one(0_u8)
    }

    /// At most so many names from this one on, or behind it.
    /// They come part by part, and by name in each, so that a page looks at few names,
    /// however many there are.
    pub fn from(&self, begin: Bound<&[u8]>, most: usize) -> Vec<(&Bytes, &T)> {
        let first = match begin {
            Bound::Included(name) | Bound::Excluded(name) => number(self.hasher.hash_one(name)),
            Bound::Unbounded => 0,
        };
        let mut found = Vec::new();
        for part in first..PARTS {
            let from = if part == first {
                begin
            } else {
                Bound::Unbounded
            };
            let room = most.saturating_sub(found.len());
            if room == 0 {
                break;
            }
            found.extend(least(self.part(part), from, room));
        }
        found
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

/// At most so many names of a part, the least of those that come in these bounds.
fn least<'a, T>(
    part: &'a IndexMap<Bytes, T>,
    from: Bound<&[u8]>,
    most: usize,
) -> Vec<(&'a Bytes, &'a T)> {
    let bounds = (from, Bound::Unbounded);
    let is_in = |(name, _): &(&Bytes, &T)| RangeBounds::<[u8]>::contains(&bounds, &name[..]);
    let mut names: Vec<_> = part.iter().filter(is_in).collect();
    if let Some(last) = most.checked_sub(1).filter(|last| *last < names.len()) {
        names.select_nth_unstable_by_key(last, |(name, _)| *name);
    }
    names.truncate(most);
    names.sort_unstable_by_key(|(name, _)| *name);
    names
}

/// The part of a name with this hash. Its place in the part goes by other bits.
fn number(hash: u64) -> usize {
    let [.., byte, _, _, _] = hash.to_le_bytes();
    usize::from(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Bytes {
        Bytes::from(format!("name {number}").as_bytes())
    }

    /// All names, in pages of so many.
    fn pages(names: &Names<usize>, most: usize) -> Vec<Bytes> {
        let mut all: Vec<Bytes> = Vec::new();
        loop {
            let begin = all
                .last()
                .map_or(Bound::Unbounded, |last| Bound::Excluded(&last[..]));
            let page = names.from(begin, most);
            assert!(page.len() <= most);
            if page.is_empty() {
                return all;
            }
            let page: Vec<Bytes> = page.iter().map(|(name, _)| (*name).clone()).collect();
            all.extend(page);
        }
    }

    #[test]
    fn pages_go_through_all_names_in_one_order() {
        const MANY: usize = 3000;
        let mut names = Names::default();
        assert_eq!(pages(&names, 10), [] as [Bytes; 0]);
        for number in 0..MANY {
            *names.get_or_insert(&name(number), || 0) = number;
        }
        let whole = names.from(Bound::Unbounded, usize::MAX);
        let whole: Vec<Bytes> = whole.iter().map(|(name, _)| (*name).clone()).collect();
        let mut sorted = whole.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), MANY);
        for most in [1, 7, 1000] {
            assert_eq!(pages(&names, most), whole, "{most}");
        }
        for (at, name) in whole.iter().enumerate() {
            let from = names.from(Bound::Included(name), 2);
            let from: Vec<_> = from.iter().map(|(name, _)| (*name).clone()).collect();
            assert_eq!(from, whole[at..MANY.min(at + 2)]);
        }
        // From the place of one that has gone.
        names.remove_if(&whole[1], |_| true);
        assert_eq!(names.from(Bound::Excluded(&whole[1]), 1)[0].0, &whole[2]);
        assert_eq!(names.from(Bound::Included(&whole[1]), 1)[0].0, &whole[2]);
    }

    /// Whatever is added and removed beside it, each name is found where it is.
    #[test]
    fn what_is_remembered_of_a_name_is_true() {
        let mut names = Names::default();
        let mut known = std::collections::HashMap::new();
        let mut draw = 1_usize;
        for step in 0..20_000 {
            draw = draw.wrapping_mul(25_214_903_917).wrapping_add(11);
            // Few enough to be added and removed often, and more than are remembered.
            let (what, number) = (draw >> 20 & 3, draw >> 24 & 63);
            let name = name(number);
            match what {
                0 => *names.get_or_insert(&name, || 0) = *known.entry(number).or_insert(step),
                1 => names.remove_if(&name, |known| *known % 2 == 0),
                2 => names.get_mut(&name).into_iter().for_each(|it| *it = step),
                _ => {}
            }
            match (what, known.get_mut(&number)) {
                (1, Some(step)) if *step % 2 == 0 => drop(known.remove(&number)),
                (2, Some(it)) => *it = step,
                _ => {}
            }
            for number in [number, number ^ 1, draw >> 32 & 63] {
                let found = names.get(&self::name(number)).map(|(_, it)| *it);
                assert_eq!(found, known.get(&number).copied(), "{step}");
            }
        }
        assert!(known.len() > 10);
    }

    #[test]
    fn each_table_has_an_order_of_its_own() {
        let (one, other) = (Names::<usize>::default(), Names::<usize>::default());
        assert_ne!(one.order(), other.order());
        assert_eq!(one.order(), one.clone().order());
    }

    /// On the way from the end some are removed and others added.
    #[test]
    fn none_that_stays_is_passed_over() {
        const MANY: usize = 5000;
        let mut names = Names::default();
        for number in 0..MANY {
            *names.get_or_insert(&name(number), || 0) = number;
        }
        let mut place = Place::END;
        let mut seen = vec![false; MANY];
        let mut steps = 0;
        while let Some((_, number)) = names.before(&mut place) {
            let number = *number;
            if number < MANY {
                seen[number] = true;
            }
            steps += 1;
            if number % 3 == 0 {
                names.remove_if(&name(number), |_| true);
            }
            names.remove_if(&name(steps * 7 % MANY), |number| *number % 2 == 0);
            names.get_or_insert(&name(MANY + steps), || MANY);
        }
        for number in (0..MANY).filter(|number| number % 2 == 1) {
            assert!(seen[number], "{number}");
            assert_eq!(names.get(&name(number)).is_some(), number % 3 != 0);
        }
    }
}
