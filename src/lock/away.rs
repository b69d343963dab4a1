//! A cluster's slot that is on its way from one node to another. Its keys move one by
//! one, and a lock may be half here and half there.
//!
//! What is not here of such a lock is not gone: of a reader whose lease keys are not
//! here there is no news. It lives until the end that was known of them, and if none
//! was, until they are here or the slot has arrived. Whatever needs a key that is not
//! here is refused, as the server refuses commands with several keys then.

use std::collections::BTreeSet;

use super::modes::modes;
use super::{Core, Key, Lease, Look, Refusal};

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

    /// Whether of some reader here it is not known if it lives.
    pub(super) fn is_half(&self, key: &Key) -> bool {
        let shared = self.locks.shared(key);
        shared.is_some_and(|shared| shared.is_half())
    }

    /// Refuses what would read or write the lease keys of an owner that are not here.
    pub(super) fn has_its_leases(
        &self,
        key: &Key,
        owner: &[u8],
        look: &Look,
    ) -> Result<(), Refusal> {
        if look.lease == Lease::Away && modes(self, key, owner, look).reads {
            return Err(Refusal::OnItsWay { key: key.clone() });
        }
        Ok(())
    }
}
