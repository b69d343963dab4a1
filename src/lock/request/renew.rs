//! RENEW: moves the end of a lease.

use crate::lock::ask::Renewal;
use crate::lock::modes::{self, modes};
use crate::lock::{leases, ready, watchdog};
use crate::lock::{Decision, Event, Key, Kind, Look, Owner, Refusal};

/// Sets the lease to `lease` ms from now, shorter too.
pub fn renew(d: &mut Decision<'_>, name: &[u8], renewal: &Renewal<'_>) -> Result<(), Refusal> {
    let key = d.core.locks.key(renewal.db, name);
    let look = ready::look(d, &key, renewal.owner);
    modes::require(d.core, &key, renewal.owner, renewal.mode, &look)?;
    modes::require_leases(d.core, &key, renewal.owner, &look)?;
    renew_one(d, &key, renewal, &look);
    Ok(())
}

/// Renews the lease of an owner that holds the lock.
pub fn renew_one(d: &mut Decision<'_>, key: &Key, renewal: &Renewal<'_>, look: &Look) {
    let owner = Owner::from(renewal.owner);
    leases::set_lease(d, key, &owner, look, d.now.deadline(renewal.lease));
    if matches!(look.kind, Kind::Permits(_)) && look.expires.is_none() {
        leases::end_with_last(d, key, look);
    }
    d.tell(key, Event::Renewed);
    let holds = modes(d.core, key, &owner, look).counts();
    watchdog::on_renewed(d.core, key, &owner, &holds, renewal, d.now);
    if renewal.watch.is_some() {
        // They are this connection's now.
        for (mode, _) in holds {
            d.core.in_flight.let_stand(key, &owner, mode);
        }
    }
}
