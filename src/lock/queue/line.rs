//! The queue of one key.

use super::order::Order;
use super::rank::Rank;
use crate::lock::WaiterId;

/// Of a key that nobody waits for.
pub static NOBODY: Line = Line {
    queue: Order::Nobody,
    entangled: Order::Nobody,
};

/// Those who wait for one key.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub queue: Order,
    /// Those of them whose owners wait in another place too: only through such can
    /// waiting go round in a cycle.
    pub entangled: Order,
}

impl Line {
    pub fn first(&self) -> Option<(&Rank, WaiterId)> {
        self.queue.iter().next()
    }
}
