//! Whether an owner can have a lock as it is now, and that it stays so until it has it.

use super::kind::{one_more, GrantKind};

use crate::lock::ask::{Once, Want};
use crate::lock::modes::{self, modes};
use crate::lock::{leases, reconcile};
use crate::lock::{Decision, Key, Kind, Look, Mode, Owner, Refusal, WallMs, Write};

/// No decision takes so many ms.
const NEAR_MS: i64 = 100;

/// In what way the owner can have the lock now, whoever waits for it; `None`:
/// it is not to be had. A mode that does not go with those it has is refused.
pub fn admit(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    mode: Mode,
    once: Once,
    look: &mut Look,
) -> Result<Option<GrantKind>, Refusal> {
    let has = modes(d.core, key, owner, look);
    if let Some(held_for) = has.other_kind_than(mode) {
        return Err(Refusal::OtherMode {
            key: key.clone(),
            owner: Owner::from(owner),
            held_for,
        });
    }
    modes::require_leases(d.core, key, owner, look)?;
    modes::require_lock(key, look)?;
    if has.has(mode) {
        return match once {
            Once::Nests => one_more(has.count(mode), key, owner).map(|_| Some(GrantKind::Nest)),
            Once::IsTheSame => Ok(Some(GrantKind::Same)),
            Once::IsRefused => {
                let (key, owner) = (key.clone(), Owner::from(owner));
                Err(Refusal::Held { key, owner })
            }
        };
    }
    Ok(match look.kind {
        Kind::Free => Some(GrantKind::First),
        Kind::Plain | Kind::Foreign(_) => None,
        Kind::ReadWrite(_) => match mode {
            Mode::Read if has.has(Mode::Write) => Some(GrantKind::Under),
            Mode::Read if reconcile::keeps_readers_out(d, key) => None,
            _ if mode != Mode::Read && reconcile::others(d, key, owner) => None,
            _ => {
                // Whoever was found dead is gone from the hash now.
                *look = reconcile::read(d, key, owner);
                match look.kind {
                    Kind::Free => Some(GrantKind::First),
                    Kind::ReadWrite(_) if mode == Mode::Read => Some(GrantKind::Join),
                    Kind::ReadWrite(_) if has.has(Mode::Read) => Some(GrantKind::Upgrade),
                    _ => None,
                }
            }
        },
    })
}

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
