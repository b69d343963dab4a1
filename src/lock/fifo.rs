//! A queue that gives its room back piece by piece as it empties. A `VecDeque` keeps all that
//! it ever took; to have it shrink is to copy all of it in one go.

use std::collections::BTreeMap;

/// Each thing in it has a number, the later the greater.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    all: BTreeMap<u64, T>,
    last: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            last: 0,
        }
    }
}

impl<T> Fifo<T> {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Its number.
    pub fn push_back(&mut self, what: T) -> u64 {
        self.last = self.last.wrapping_add(1);
        self.all.insert(self.last, what);
        self.last
    }

    pub fn front(&self) -> Option<&T> {
        self.all.first_key_value().map(|(_, what)| what)
    }

    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.all.values_mut().next()
    }

    pub fn pop_front(&mut self) -> Option<T> {
        self.all.pop_first().map(|(_, what)| what)
    }

    /// Takes out what has this number, wherever it stands.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        self.all.remove(&number)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut()
    }

    #[cfg(test)]
    pub fn get(&self, number: u64) -> Option<&T> {
        self.all.get(&number)
    }
}
