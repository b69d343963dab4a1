//! FORCE: ends everybody's holds.

use crate::lock::found::leases_looked_at;
use crate::lock::{leases, modes, ready, watchdog};
use crate::lock::{ClientId, Decision, Event, Kind, Lease, Mode, Refusal, Whom};

/// Frees the lock whoever holds it; whether it was held. The connection that
/// does it is not closed if a watchdog hold of its own is among those.
pub fn force(
    d: &mut Decision<'_>,
    db: i32,
    name: &[u8],
    client: Option<ClientId>,
) -> Result<bool, Refusal> {
    let key = d.core.locks.key(db, name);
    let look = ready::look(d, &key, &[]);
    modes::require_lock(&key, &look)?;
    if look.kind == Kind::Free {
        return Ok(false);
    }
    if look.expires.is_none() {
        return Err(Refusal::NoLease { key });
    }
    let shared = look.kind != Kind::Plain;
    if shared {
        let holders = d.ks.holders(&key);
        if holders.iter().any(|holder| holder.lease == Lease::Away) {
            return Err(Refusal::OnItsWay { key });
        }
        for holder in holders {
            if holder.mode == Mode::Read && holder.lease != Lease::Gone {
                // Not each of them where there are very many: what is left ends
                // by itself, and holds nothing.
                leases::end(d, &key, &holder.owner, leases_looked_at(holder.holds));
            }
        }
    }
    let whom = if shared { Whom::AllShared } else { Whom::One };
    for hold in d.free(&key, Event::Forced, whom) {
        let mut lost = watchdog::on_lost_with(d.core, &key, &hold);
        lost.retain(|watching| Some(*watching) != client);
        watchdog::close(d, lost);
    }
    Ok(true)
}
