//! A request that waits.

use super::rank::Rank;
use crate::lock::ask::Want;
use crate::lock::{Key, MonoUs, Now};

/// A request that stands in a queue.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// One, or for MACQUIRE several; each once.
    pub keys: Vec<Key>,
    pub want: Want,
    pub rank: Rank,
    pub since: MonoUs,
    /// When its BLOCK time is over.
    pub until: Option<MonoUs>,
}

impl Waiter {
    /// It wants several keys at once.
    pub fn is_many(&self) -> bool {
        self.keys.len() > 1
    }

    /// After a stall of the server: its time was over before the lock was free.
    pub fn is_late(&self, now: Now) -> bool {
        self.until.is_some_and(|until| until <= now.mono)
    }
}
