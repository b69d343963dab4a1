//! Whether an owner can have a lock as it is now.

use super::kind::GrantKind;

use crate::lock::ask::{Once, Share};
use crate::lock::kind::lock_kind::Asked;
use crate::lock::modes::{self, modes};
use crate::lock::{Decision, Key, Look, Mode, Owner, Refusal};

/// In what way the owner can have the lock now, whoever waits for it; `None`:
/// it is not to be had. A mode that does not go with those it has is refused.
pub fn admit(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    (mode, share): (Mode, Share),
    once: Once,
    look: &mut Look,
) -> Result<Option<GrantKind>, Refusal> {
    let has = modes(d.core, key, owner, look);
    if let Some(held_for) = has.other_kind_than(mode) {
        return Err(Refusal::OtherMode {
            key: key.clone(),
            owner: Owner::from(owner),
            held_for,
            asked: mode,
        });
    }
    modes::require_leases(d.core, key, owner, look)?;
    modes::require_lock(key, look)?;
    let Some(kind) = d.kinds.of(look) else {
        return Ok(Some(GrantKind::First));
    };
    let asked = Asked {
        owner,
        mode,
        share,
        once,
        has,
    };
    kind.admit(d, key, &asked, look)
}
