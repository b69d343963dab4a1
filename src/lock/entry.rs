//! What the core remembers of a key: only what the keyspace cannot tell, and
//! only while it is of use.

use std::collections::BTreeSet;

use super::effect::WaiterId;
use super::key::Bytes;

/// What is known of one owner's holds. The keyspace says whether it still has
/// them; this adds what a hash cannot hold.
#[derive(Debug)]
pub struct Hold {
    pub owner: Bytes,
    /// The token of the hold under way.
    pub token: i64,
    /// When it was acquired, wall-clock us.
    pub since_us: i64,
}

/// One key: its holder as far as known, its deadline, its queue.
#[derive(Debug, Default)]
pub struct Entry {
    pub holder: Option<Hold>,
    /// The wall-clock ms under which the key stands in the index of leases.
    pub deadline: Option<i64>,
    /// The deadline is that of a key that is no lock.
    pub foreign: bool,
    /// First come, first served: the smallest number is the head.
    pub queue: BTreeSet<WaiterId>,
}

impl Entry {
    pub fn hold(&self, owner: &[u8]) -> Option<&Hold> {
        self.holder.as_ref().filter(|hold| &*hold.owner == owner)
    }

    /// Nothing here is worth remembering.
    pub fn is_idle(&self) -> bool {
        self.holder.is_none() && self.deadline.is_none() && self.queue.is_empty()
    }
}
