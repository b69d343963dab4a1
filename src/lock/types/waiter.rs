//! A request that waits, or whose reply is on its way.

use std::num::NonZeroU64;

/// A request's number, in order of arrival over all locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct WaiterId(NonZeroU64);

impl WaiterId {
    pub const FIRST: Self = Self(NonZeroU64::MIN);
    pub const LAST: Self = Self(NonZeroU64::MAX);

    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Who is next in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Waiter(WaiterId),
    /// Those who wait by subscription.
    Subscribers,
}

impl Default for WaiterId {
    fn default() -> Self {
        Self::FIRST
    }
}
