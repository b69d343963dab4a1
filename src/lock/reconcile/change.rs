//! How what is known of a key has to change by what was found.

use super::Cause;
use crate::lock::table::Entry;
use crate::lock::{Lease, Look};

/// How what is known of a key has to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All holds that are known are over. `free`: nothing is there now, so that what only
    /// stood still can be written anew.
    Over { cause: Cause, free: bool },
    /// They are over, and the hash without a field of any holder goes after them.
    Emptied,
    /// The own lease of the owner that looks is over.
    OwnerOver,
    /// Who holds it cannot be told from this owner's fields: all are to be read.
    Holders,
    /// What is presumed to be a lock ends at another moment, or is none any more.
    Presumed(Cause),
    /// The lock ends at another moment, or so does the own lease of this owner: with how
    /// many holds.
    Ends(Option<(Lease, i64)>),
}

impl Change {
    /// Of a lock that several may hold: it ends at another moment than was known, or so does the
    /// own lease of this owner, with so many holds; `None`: neither.
    pub fn ends(
        known: &Entry,
        owner: &[u8],
        found: &Look,
        its: Option<(Lease, i64)>,
    ) -> Option<Self> {
        let shared = known.shared();
        let hold = shared.and_then(|shared| shared.hold(owner));
        let is_its = |its| hold.is_some_and(|hold| (hold.lease, hold.holds) == its);
        let same = its.is_none_or(is_its) && shared?.expires == found.expires;
        (!same).then_some(Self::Ends(its))
    }

    /// Another lock stands in the place of the one that was known.
    pub fn replaced(heard: Option<Cause>) -> Self {
        let cause = heard.unwrap_or(Cause::Unknown).max(Cause::Overwritten);
        let free = false;
        Self::Over { cause, free }
    }
}
