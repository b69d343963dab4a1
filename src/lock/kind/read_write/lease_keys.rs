//! The lease keys of a reader's holds, one for each: all of them change together.

use crate::lock::{Decision, Key, Owner, WallMs, Write, MOST_READS};

/// They end at this moment.
pub fn renew(d: &mut Decision<'_>, key: &Key, owner: &Owner, holds: i64, at: WallMs) {
    for index in 1..=holds.min(MOST_READS) {
        let owner = owner.clone();
        d.write(key, Write::LeaseAt { owner, index, at });
    }
}

/// Those of these holds are removed, lowest first.
pub fn end(d: &mut Decision<'_>, key: &Key, owner: &Owner, holds: impl Iterator<Item = i64>) {
    for index in holds.take_while(|index| *index <= MOST_READS) {
        let owner = owner.clone();
        d.write(key, Write::EndLease { owner, index });
    }
}
