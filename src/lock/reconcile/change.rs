//! How what is known of a key has to change by what was found.

use super::Cause;
use crate::lock::Lease;

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
    /// Another lock stands in the place of the one that was known.
    pub fn replaced(heard: Option<Cause>) -> Self {
        let cause = heard.unwrap_or(Cause::Unknown).max(Cause::Overwritten);
        let free = false;
        Self::Over { cause, free }
    }
}
