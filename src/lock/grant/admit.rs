//! Whether an owner can have a lock as it is now.

use super::kind::{one_more, GrantKind};
use super::permits;

use crate::lock::ask::{Once, Share};
use crate::lock::modes::{self, modes};
use crate::lock::reconcile;
use crate::lock::{Decision, Key, Kind, Look, Mode, Owner, Refusal};

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
    if let (Mode::Permits, Kind::Permits(pool)) = (mode, look.kind) {
        return permits::admit(d.core, key, owner, (share, once), (has.count(mode), pool));
    }
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
        Kind::Plain | Kind::Permits(_) | Kind::Foreign(_) => None,
        Kind::ReadWrite(_) => match mode {
            Mode::Permits => None,
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
