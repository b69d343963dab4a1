//! One decision of the core under way: what it looks at and what it leaves.

use super::{Effect, Effects, Key, Keyspace, Now};

/// A piece of long work that has had so many effects goes on in another decision.
const MANY: usize = 1024;

/// The keyspace, the clocks, and the effects so far.
pub struct Step<'a, K: Keyspace> {
    pub ks: &'a mut K,
    pub now: Now,
    pub out: &'a mut Effects,
}

impl<K: Keyspace> Step<'_, K> {
    /// Whether very much has come of this step since there were so many effects.
    pub(super) fn is_long(&self, since: usize) -> bool {
        self.out.len().saturating_sub(since) >= MANY
    }

    /// Writes at once, so that whatever is looked at next is true. Whether it did.
    pub(super) fn write(&mut self, effect: Effect) -> bool {
        let written = self.ks.write(&effect);
        self.out.push(effect);
        written
    }

    /// The key ends at this moment, if it does not already.
    pub(super) fn expire_at(&mut self, key: &Key, from: Option<i64>, at: Option<i64>) {
        if let Some(at) = at.filter(|_| from != at) {
            self.write(Effect::ExpireAt {
                key: key.clone(),
                at,
            });
        }
    }
}
