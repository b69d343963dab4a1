//! The lease keys of a reader's holds, one for each: all of them change together.

use std::ops::RangeInclusive;

use super::{Decision, Key, Owner, WallMs, Write, MOST_READS};

/// They end at this wall-clock ms.
pub fn renew(d: &mut Decision<'_>, key: &Key, owner: &Owner, holds: i64, at: WallMs) {
    for index in 1..=holds.min(MOST_READS) {
        d.write(Write::LeaseAt {
            key: key.clone(),
            owner: owner.clone(),
            index,
            at,
        });
    }
}

/// Those of these holds are removed.
pub fn end(d: &mut Decision<'_>, key: &Key, owner: &Owner, holds: RangeInclusive<i64>) {
    let (first, last) = holds.into_inner();
    for index in first..=last.min(MOST_READS) {
        d.write(Write::EndLease {
            key: key.clone(),
            owner: owner.clone(),
            index,
        });
    }
}
