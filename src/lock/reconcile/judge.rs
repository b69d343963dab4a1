//! Whether what was found can be a lock.

use crate::lock::table::Entry;
use crate::lock::{Foreign, Kind, Look};

/// What this owner found, or that it is no lock: a hash without a TTL may be somebody's data.
/// Only one that is known for a lock is taken for one, for somebody has PERSISTed it; a plain one
/// if the holder is who was known: the lock may have gone unheard, and its name be used again.
pub fn judge(known: Option<&Entry>, owner: &[u8], found: Look) -> Look {
    let is_known = |entry: &Entry| match (found.kind, entry.plain()) {
        (Kind::Plain, Some(hold)) => found.as_known || (found.holds > 0 && *hold.owner == *owner),
        _ => entry.shared().is_some(),
    };
    if !found.kind.is_lock() || found.expires.is_some() || known.is_some_and(is_known) {
        return found;
    }
    Look {
        kind: Kind::Foreign(Foreign::NoTtl),
        ..found
    }
}

/// Why a hash without a TTL is no lock, of which so many fields count holds.
pub fn why_no_lock(found: &Look, holders: usize) -> Foreign {
    if found.fields > 0 && found.fields == holders {
        Foreign::NoTtl
    } else {
        Foreign::OtherHash
    }
}
