//! The hashes of owners' names. A hand-over asks for those of two owners, several times each.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

/// Names are remembered in so many places, by their last byte.
const REMEMBERED: usize = 16;

#[derive(Clone, Debug, Default)]
pub struct Hashes {
    hasher: RandomState,
    /// Those that were asked for last.
    asked: RefCell<[(Vec<u8>, u64); REMEMBERED]>,
}

impl Hashes {
    pub fn of(&self, owner: &[u8]) -> u64 {
        let mut asked = self.asked.borrow_mut();
        let place = |byte: &u8| usize::from(*byte) % REMEMBERED;
        let Some((name, hash)) = owner.last().and_then(|byte| asked.get_mut(place(byte))) else {
            return self.hasher.hash_one(owner);
        };
        if *name != owner {
            name.clear();
            name.extend_from_slice(owner);
            *hash = self.hasher.hash_one(owner);
        }
        *hash
    }
}
