//! The lease keys of a reader's holds, one for each: all of them change together.

use std::ops::RangeInclusive;

use super::{Bytes, Decision, Key, Write, MOST_READS};

/// They end at this wall-clock ms.
pub fn renew(d: &mut Decision<'_>, key: &Key, owner: &Bytes, holds: i64, at: i64) {
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
pub fn end(d: &mut Decision<'_>, key: &Key, owner: &Bytes, holds: RangeInclusive<i64>) {
    let (first, last) = holds.into_inner();
    for index in first..=last.min(MOST_READS) {
        d.write(Write::EndLease {
            key: key.clone(),
            owner: owner.clone(),
            index,
        });
    }
}
