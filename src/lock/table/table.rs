//! The keys of one database of which more is known than the keyspace tells, and when
//! each of them is due.

use super::entry::{Entry, Holders};
use super::names::Names;
use crate::lock::deadlines::Deadlines;
use crate::lock::{Bytes, WallMs};

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub entries: Names<Entry>,
    /// The moment under which each of them stands here is its `deadline`.
    pub leases: Deadlines<WallMs, Bytes>,
}

impl Table {
    /// The entry of a name, made with this stamp if there is none.
    pub fn get_or_new(&mut self, name: &Bytes, stamp: u32) -> &mut Entry {
        let new = || Entry {
            stamp,
            ..Entry::default()
        };
        self.entries.get_or_insert(name, new)
    }

    /// Puts a name under another moment, or under none: that of a lock.
    pub fn set_deadline(&mut self, name: &Bytes, to: Option<WallMs>, stamp: u32) {
        let entry = self.get_or_new(name, stamp);
        let from = std::mem::replace(&mut entry.deadline, to);
        if from != to {
            entry.foreign = false;
            self.leases.change(name, from, to);
        }
    }

    /// Takes away who holds a lock and when it ends, and removes the entry if nothing of
    /// it is worth remembering then.
    pub fn take_holders(&mut self, name: &Bytes) -> Option<Holders> {
        let entry = self.entries.get_mut(name)?;
        let from = entry.deadline.take();
        let was_foreign = std::mem::take(&mut entry.foreign);
        let holders = Holders {
            plain: entry.plain.take(),
            shared: entry.shared.take(),
            deadline: from.filter(|_| !was_foreign),
        };
        if entry.is_idle() {
            self.tidy(name);
        }
        self.leases.change(name, from, None);
        Some(holders)
    }

    /// Forgets a name if nothing of it is worth remembering.
    pub fn tidy(&mut self, name: &[u8]) {
        self.entries.remove_if(name, Entry::is_idle);
    }
}
