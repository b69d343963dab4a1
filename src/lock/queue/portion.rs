//! How many requests are worked on in one go: what that takes grows with their keys.

use super::waiter::Waiter;
use crate::lock::WaiterId;

/// How much is done in one go: requests with so many keys, and one in any case.
pub struct Portion(usize);

impl Portion {
    pub fn new(keys: usize) -> Self {
        Self(keys)
    }

    pub fn left(&self) -> usize {
        self.0
    }

    pub fn is_over(&self) -> bool {
        self.0 == 0
    }

    /// Whether one with so many keys belongs to it too.
    pub fn takes(&mut self, keys: usize) -> bool {
        let takes = !self.is_over();
        self.0 = self.0.saturating_sub(keys);
        takes
    }

    /// The first of these.
    pub fn of<'a>(
        &mut self,
        ids: impl IntoIterator<Item = WaiterId>,
        get: impl Fn(WaiterId) -> Option<&'a Waiter>,
    ) -> Vec<WaiterId> {
        let keys = |id: WaiterId| get(id).map_or(1, |waiter| waiter.keys.len());
        let ids = ids.into_iter();
        ids.take_while(|id| self.takes(keys(*id))).collect()
    }
}
