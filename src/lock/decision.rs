//! One decision of the core under way: what it looks at and what it leaves.

use super::{Core, Effect, Effects, Key, Keyspace, Now};

/// A piece of long work that has had so many effects goes on in another decision.
const MANY: usize = 1024;

/// The core, the keyspace, the clocks, and the effects so far.
pub struct Decision<'a> {
    pub core: &'a mut Core,
    pub ks: &'a mut dyn Keyspace,
    pub now: Now,
    pub out: &'a mut Effects,
}

impl Decision<'_> {
    /// Whether very much has come of this decision since there were so many effects.
    pub fn is_long(&self, since: usize) -> bool {
        self.out.len().saturating_sub(since) >= MANY
    }

    /// Writes at once, so that whatever is looked at next is true. Whether it did.
    pub fn write(&mut self, effect: Effect) -> bool {
        let written = self.ks.write(&effect);
        self.out.push(effect);
        written
    }

    /// The key ends at this moment, if it does not already.
    pub fn expire_at(&mut self, key: &Key, from: Option<i64>, at: Option<i64>) {
        if let Some(at) = at.filter(|_| from != at) {
            self.write(Effect::ExpireAt {
                key: key.clone(),
                at,
            });
        }
    }
}
