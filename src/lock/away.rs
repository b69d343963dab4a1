//! A cluster's slot that is on its way from one node to another. Its keys move one by
//! one, and a lock may be half here and half there.
//!
//! What is not here of such a lock is not gone: of a reader whose lease keys are not
//! here there is no news. It lives until the end that was known of them, and if none
//! was, until they are here or the slot has arrived. Whatever needs a key that is not
//! here is refused, as the server refuses commands with several keys then.

use std::collections::BTreeSet;

use super::{Core, Key};

/// Keys to be looked at again in a while, a round of them at a time.
#[derive(Clone, Debug, Default)]
pub struct Away {
    round: BTreeSet<Key>,
    next: BTreeSet<Key>,
}

impl Core {
    /// The key is to be looked at again in a while: its slot is on its way, and
    /// nobody tells when it has arrived.
    pub fn look_again(&mut self, key: &Key) {
        if !self.away.round.contains(key) {
            self.away.next.insert(key.clone());
        }
    }

    /// Whether any key is to be looked at again.
    pub fn is_any_away(&self) -> bool {
        !self.away.round.is_empty() || !self.away.next.is_empty()
    }

    /// Those whose turn it is, at most so many: each is due for a [`Core::review`].
    pub fn take_away(&mut self, most: usize) -> Vec<Key> {
        if self.away.round.is_empty() {
            std::mem::swap(&mut self.away.round, &mut self.away.next);
        }
        let pops = std::iter::from_fn(|| self.away.round.pop_first());
        pops.take(most).collect()
    }
}
