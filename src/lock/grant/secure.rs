//! That a lock stays as it was found until its owner has it.

use super::kind::GrantKind;

use crate::lock::ask::Want;
use crate::lock::leases;
use crate::lock::{Decision, Key, Look, Refusal, WallMs, Write};

/// No decision takes so many ms.
const NEAR_MS: i64 = 100;

/// A lock that is about to end could do so between the look at it and what is
/// written next: it is prolonged before anything else is.
pub fn secure(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: GrantKind,
    look: &mut Look,
) -> Result<(), Refusal> {
    let until = d.now.deadline(want.lease);
    let soon = d.now.deadline(NEAR_MS);
    let ends = |end: &WallMs| how != GrantKind::First && *end < soon && *end < until;
    if look.expires.filter(ends).is_none() {
        return Ok(());
    }
    if !d.write(key, Write::ExpireAt(until)) {
        return Err(Refusal::Vanished { key: key.clone() });
    }
    look.expires = Some(until);
    leases::know_end(d, key, look, Some(until));
    Ok(())
}
