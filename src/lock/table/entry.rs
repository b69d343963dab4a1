//! What is remembered of a key: only what the keyspace cannot tell, and only while it
//! is of use. It is changed by [`Locks`] alone.
//!
//! [`Locks`]: super::Locks

use super::hold::Hold;
use super::shared::Shared;
use crate::lock::WallMs;

/// One key: its holders as far as known, its deadline, its queue.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The holder of a plain lock.
    pub(super) plain: Option<Hold>,
    /// The holders of a read/write lock. Both: somebody made a read/write lock of
    /// a plain one that is held.
    pub(super) shared: Option<Box<Shared>>,
    /// When something here ends: the moment under which the key stands in the index of
    /// leases.
    pub deadline: Option<WallMs>,
    /// The deadline is that of a key that is no lock.
    pub foreign: bool,
    /// How often it was handed on since it was last asked who waits by subscription.
    pub(super) passes: u8,
    /// When it was made or last attended to, as sweeps count (`heard`).
    pub stamp: u32,
    /// Somebody waits for it.
    pub waited_for: bool,
}

/// What is known of a lock's holders, and when it ends.
#[derive(Debug, Default)]
pub struct Holders {
    pub plain: Option<Hold>,
    pub shared: Option<Box<Shared>>,
    pub deadline: Option<WallMs>,
}

impl Entry {
    /// Of a key of which nothing is known yet.
    pub(super) fn new(stamp: u32) -> Self {
        Self {
            stamp,
            ..Self::default()
        }
    }

    /// The holder of a plain lock.
    pub fn plain(&self) -> Option<&Hold> {
        self.plain.as_ref()
    }

    /// The holders of a read/write lock.
    pub fn shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// All that are known to hold it.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        let parties = self.shared.iter().flat_map(|shared| shared.parties());
        self.plain.iter().chain(parties.map(|party| &party.hold))
    }

    /// How many fields of the hash the known holders account for.
    pub fn fields(&self) -> usize {
        let shared = self.shared.as_ref().map_or(0, |shared| shared.fields());
        shared.saturating_add(usize::from(self.plain.is_some()))
    }

    /// The plain hold of an owner.
    pub fn plain_of(&self, owner: &[u8]) -> Option<&Hold> {
        self.plain.as_ref().filter(|hold| &*hold.owner == owner)
    }

    /// What is known of an owner's holds.
    pub fn hold(&self, owner: &[u8]) -> Option<&Hold> {
        self.plain_of(owner).or_else(|| {
            let party = self.shared.as_ref()?.party(owner)?;
            Some(&party.hold)
        })
    }

    pub(super) fn hold_mut(&mut self, owner: &[u8]) -> Option<&mut Hold> {
        if self.plain_of(owner).is_some() {
            return self.plain.as_mut();
        }
        self.shared.as_mut()?.hold_mut(owner)
    }

    /// Somebody is known to hold it.
    pub fn is_held(&self) -> bool {
        self.plain.is_some() || self.shared.is_some()
    }

    /// Nothing here is worth remembering.
    pub fn is_idle(&self) -> bool {
        !self.is_held() && self.deadline.is_none() && !self.waited_for
    }
}
