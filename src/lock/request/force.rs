//! FORCE: ends everybody's holds.

use super::meant;

use crate::lock::ask::Aim;
use crate::lock::reconcile;
use crate::lock::table::Why;
use crate::lock::{modes, ready, watchdog};
use crate::lock::{ClientId, Decision, Event, Key, Refusal, WakeTarget, Write};

/// Frees the lock whoever holds it; whether it was held, and by whom the request means.
/// The connection that does it is not closed if a watchdog hold of its own is among those.
pub fn force(
    d: &mut Decision<'_>,
    db: i32,
    name: &[u8],
    client: Option<ClientId>,
    aim: Option<&Aim<'_>>,
) -> Result<bool, Refusal> {
    let key = d.core.locks.key(db, name);
    let owner: &[u8] = match aim {
        Some(Aim::Owner(owner)) => owner,
        Some(Aim::Token(_)) | None => &[],
    };
    let look = ready::look(d, &key, owner);
    modes::require_lock(&key, &look)?;
    let Some(kind) = d.kinds.of(&look) else {
        return Ok(false);
    };
    if let Some(aim) = aim {
        if !meant::is_aimed_at(d, &key, &look, aim)? {
            return Ok(false);
        }
    }
    let whom = kind.force(d, &key)?;
    if d.core.locks.are_many(&key) {
        force_many(d, &key, whom, client);
        return Ok(true);
    }
    for hold in d.free(&key, Event::Forced, whom) {
        watchdog::on_forced(d, &key, hold, client);
    }
    Ok(true)
}

/// The same where very many hold it: what follows for each is to come.
fn force_many(d: &mut Decision<'_>, key: &Key, whom: WakeTarget, client: Option<ClientId>) {
    d.write(key, Write::Delete);
    d.tell(key, Event::Forced);
    d.left_free(key, whom);
    reconcile::end_many(d, key, None, (Why::Forced(client), true));
}
