//! What one decision leaves for another: it was made outside of one, has come to its
//! bound, or, in a cluster, is about another slot.

use std::collections::{BTreeMap, BTreeSet};

use super::rank::Rank;
use super::{Bytes, Core, Key, WaiterId, Whom};

/// As the fields of [`Core`] by these names.
#[derive(Clone, Debug, Default)]
pub struct Later {
    pub pending: BTreeSet<Key>,
    nesting: BTreeSet<(Rank, WaiterId, Key)>,
    risen: BTreeSet<(Key, Bytes)>,
    pub suspects: BTreeSet<Bytes>,
    left: BTreeMap<Key, Whom>,
}

impl Later {
    /// The keys that somebody may be granted by it.
    pub fn keys(&self) -> Vec<Key> {
        let nesting = self.nesting.iter().map(|(_, _, key)| key);
        let risen = self.risen.iter().map(|(key, _)| key);
        let left = self.left.keys();
        let all = self.pending.iter().chain(nesting).chain(risen).chain(left);
        let all: BTreeSet<&Key> = all.collect();
        all.into_iter().cloned().collect()
    }

    /// Nothing is to be settled on a key.
    pub fn forget(&mut self, key: &Key) {
        self.pending.remove(key);
        self.nesting.retain(|(_, _, of)| of != key);
        self.risen.retain(|(of, _)| of != key);
        self.left.remove(key);
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
            && self.nesting.is_empty()
            && self.risen.is_empty()
            && self.suspects.is_empty()
            && self.left.is_empty()
    }
}

impl Core {
    /// The keys on which something was left to be settled.
    pub fn left_for_later(&self) -> Vec<Key> {
        self.later.keys()
    }

    /// Leaves for later what is to be settled.
    pub(super) fn unsettle(&mut self) {
        self.later.pending.append(&mut self.pending);
        self.later.nesting.append(&mut self.nesting);
        self.later.risen.append(&mut self.risen);
        self.later.suspects.append(&mut self.suspects);
        self.later.left.append(&mut self.left);
    }

    /// Takes up again what was left.
    pub(super) fn take_up(&mut self) {
        self.pending.append(&mut self.later.pending);
        self.nesting.append(&mut self.later.nesting);
        self.risen.append(&mut self.later.risen);
        self.suspects.append(&mut self.later.suspects);
        self.left.append(&mut self.later.left);
    }
}
