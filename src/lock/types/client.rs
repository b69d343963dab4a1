//! A connection of a client.

use std::fmt;
use std::num::NonZeroU64;

/// A client's id, which is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ClientId(NonZeroU64);

impl ClientId {
    /// No id is greater.
    pub const LAST: Self = Self(NonZeroU64::MAX);

    /// `None`: 0, which stands for no client.
    pub fn new(id: u64) -> Option<Self> {
        NonZeroU64::new(id).map(Self)
    }

    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
