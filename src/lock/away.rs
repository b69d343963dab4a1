//! A cluster's slot that is on its way from one node to another. Its keys move one by
//! one, and a lock may be half here and half there.
//!
//! What is not here of such a lock is not gone: of a reader whose lease keys are not
//! here there is no news. It lives until the end that was known of them, and if none
//! was, until they are here or the slot has arrived. Whatever needs a key that is not
//! here is refused, as the server refuses commands with several keys then.

use std::collections::BTreeSet;

use super::Key;

/// Keys to be looked at again in a while, a round of them at a time.
#[derive(Clone, Debug, Default)]
pub struct Away {
    round: BTreeSet<Key>,
    next: BTreeSet<Key>,
}

impl Away {
    /// The key is to be looked at again in a while: its slot is on its way, and
    /// nobody tells when it has arrived.
    pub fn look_again(&mut self, key: &Key) {
        if !self.round.contains(key) {
            self.next.insert(key.clone());
        }
    }

    /// Whether no key is to be looked at again.
    pub fn is_empty(&self) -> bool {
        self.round.is_empty() && self.next.is_empty()
    }

    /// Those that are to be looked at now, at most so many.
    pub fn take(&mut self, most: usize) -> Vec<Key> {
        if self.round.is_empty() {
            std::mem::swap(&mut self.round, &mut self.next);
        }
        let pops = std::iter::from_fn(|| self.round.pop_first());
        pops.take(most).collect()
    }
}
