//! What is kept of one lock that is only held.

use std::cell::OnceCell;

use crate::lock::table::entry::Entry;
use crate::lock::table::hold::{Begun, Hold};
use crate::lock::{ClientId, Owner, WallMs};

/// A lock that is only held.
#[derive(Clone, Debug)]
pub struct Record {
    /// The name of the lock, and behind it that of its owner.
    pub names: Box<[u8]>,
    pub len: u32,
    /// As in [`Entry::stamp`].
    pub stamp: u32,
    pub hash: u64,
    pub begun: Begun,
    /// The connection that took it.
    pub client: Option<ClientId>,
    pub ends: WallMs,
    /// Its place among the ends.
    pub place: u32,
    /// What it comes to, for those who look.
    pub seen: OnceCell<Box<Entry>>,
}

impl Record {
    pub fn name(&self) -> &[u8] {
        self.parts().0
    }

    pub fn owner(&self) -> &[u8] {
        self.parts().1
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let parts = self.names.split_at_checked(self.len as usize);
        parts.unwrap_or_default()
    }

    pub fn hold(&self) -> Hold {
        let mut hold = Hold::plain(Owner::from(self.owner()));
        (hold.begun, hold.client) = (Some(self.begun), self.client);
        hold
    }

    /// What it comes to.
    pub fn to_entry(&self) -> Entry {
        Entry {
            plain: Some(self.hold()),
            deadline: Some(self.ends),
            ..Entry::new(self.stamp)
        }
    }
}
