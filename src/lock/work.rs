//! What is to be drained: by the decision that has stirred it up, or, where that may
//! not or has come to its bound, by another.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use super::queue::Queues;
use super::queue::Rank;
use super::{Key, Owner, WaiterId, WakeTarget};

#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Keys whose queue is to be looked at.
    pub dirty: BTreeSet<Key>,
    /// Requests for keys that their owners have come to hold, in order.
    pub nesting: BTreeSet<(Rank, WaiterId, Key)>,
    /// Those owners: one may be a reader now that waits to write,
    pub risen: BTreeSet<(Key, Owner)>,
    /// and its requests may be part of a cycle.
    pub suspects: BTreeSet<Owner>,
    /// Keys that were left free, and who is to be woken if they stay so.
    pub freed: BTreeMap<Key, WakeTarget>,
}

impl Work {
    /// Somebody may be granted something.
    pub fn is_stirred(&self) -> bool {
        !self.dirty.is_empty() || !self.nesting.is_empty() || !self.risen.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        !self.is_stirred() && self.suspects.is_empty() && self.freed.is_empty()
    }

    /// The keys that somebody may be granted by it.
    pub fn keys(&self) -> Vec<Key> {
        let nesting = self.nesting.iter().map(|(_, _, key)| key);
        let risen = self.risen.iter().map(|(key, _)| key);
        let freed = self.freed.keys();
        let all = self.dirty.iter().chain(nesting).chain(risen).chain(freed);
        let all: BTreeSet<&Key> = all.collect();
        all.into_iter().cloned().collect()
    }

    /// Nothing is to be drained on a key.
    pub fn forget(&mut self, key: &Key) {
        self.dirty.remove(key);
        self.nesting.retain(|(_, _, of)| of != key);
        self.risen.retain(|(of, _)| of != key);
        self.freed.remove(key);
    }

    /// Asserts that whoever is to nest has asked for that very key.
    #[cfg(test)]
    pub fn check(&self, queues: &Queues) {
        for (_, id, key) in &self.nesting {
            let waiter = queues.get(*id);
            let asks = waiter.is_none_or(|waiter| waiter.keys.contains(key));
            assert!(asks, "{id:?} does not wait for {key:?}");
        }
    }

    /// Adds all of another's.
    pub fn append(&mut self, other: Self) {
        self.dirty.extend(other.dirty);
        self.nesting.extend(other.nesting);
        self.risen.extend(other.risen);
        self.suspects.extend(other.suspects);
        self.freed.extend(other.freed);
    }
}
