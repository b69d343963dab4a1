//! What is known of a reader, and what that makes of its field.

use crate::lock::table::Entry;
use crate::lock::{Lease, Now};

/// Whether the owner's field is that of a plain lock which somebody has made a
/// read/write lock of: an exclusive hold until the hash ends.
pub fn is_left_over(known: Option<&Entry>, owner: &[u8], lease: Lease) -> bool {
    lease.is_missing() && known.is_some_and(|entry| entry.plain_of(owner).is_some())
}

/// When a reader's lease ends, after this was found of its lease keys. What is not here
/// of a lock whose slot is on its way is not gone: it lives until the end that was known.
pub fn lease_now(known: Option<&Entry>, owner: &[u8], found: Lease, now: Now) -> Lease {
    if found != Lease::Migrating {
        return found;
    }
    let hold = known.and_then(|entry| entry.shared()?.hold(owner));
    match hold.map(|hold| hold.lease) {
        // Nobody can have renewed it meanwhile: that needs the hash, which is here.
        Some(Lease::Until(at)) if at < now.wall_ms() => Lease::Gone,
        Some(Lease::Gone) | None => Lease::Migrating,
        Some(known) => known,
    }
}
