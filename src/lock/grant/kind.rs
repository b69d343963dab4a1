//! In what way an owner can have a lock.

use crate::lock::{Core, Key, Owner, Refusal, Token};

/// In what way an owner can have the lock as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantKind {
    /// It is free.
    First,
    /// Others read, so does the owner; or there are permits left, be some its own already.
    Join,
    /// It has it in this mode already.
    Nest,
    /// The same, with ONCE: no hold more.
    Same,
    /// It writes, and reads too.
    Under,
    /// It alone reads, and writes from now on.
    Upgrade,
}

impl GrantKind {
    /// Only an owner that holds the lock can have it so: no queue is in its way.
    pub fn is_holders(self) -> bool {
        matches!(self, Self::Nest | Self::Same | Self::Under | Self::Upgrade)
    }

    /// It begins a hold with a token of its own.
    pub fn is_new(self) -> bool {
        matches!(self, Self::First | Self::Join | Self::Upgrade)
    }
}

/// The token of the hold that an acquisition nests in, if it is known.
pub fn token_under_way(core: &Core, key: &Key, owner: &[u8], how: GrantKind) -> Option<Token> {
    if how.is_new() {
        return None;
    }
    core.locks.get(key)?.hold(owner)?.token()
}

/// One hold more, if there can be.
pub fn one_more(holds: i64, key: &Key, owner: &[u8]) -> Result<i64, Refusal> {
    holds.checked_add(1).ok_or_else(|| too_many(key, owner))
}

pub fn too_many(key: &Key, owner: &[u8]) -> Refusal {
    let (key, owner) = (key.clone(), Owner::from(owner));
    Refusal::TooManyHolds { key, owner }
}
