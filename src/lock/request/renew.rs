//! RENEW: moves the end of a lease.

use super::acquire::{is_told_at, require_free_tag};

use crate::lock::ask::{Fence, Renewal};
use crate::lock::modes::{self, modes};
use crate::lock::table::{Entry, Hold};
use crate::lock::{grant, leases, ready, reconcile, watchdog};
use crate::lock::{Decision, Event, Key, Look, Owner, Refusal, Token};

/// Sets the lease to `lease` ms from now, shorter too; the lock's fencing counter, if that
/// was to be raised, or the hold's token, if that was to be a new one.
pub fn renew(
    d: &mut Decision<'_>,
    name: &[u8],
    renewal: &Renewal<'_>,
) -> Result<Option<Token>, Refusal> {
    let key = d.core.locks.key(renewal.db, name);
    let look = ready::look(d, &key, renewal.owner);
    modes::require(d.core, &key, renewal.owner, renewal.mode, &look)?;
    modes::require_leases(d.core, &key, renewal.owner, &look)?;
    require_its_tag(d, std::slice::from_ref(&key), renewal)?;
    let token = fence(d, &key, renewal, &look)?;
    renew_one(d, &key, renewal, &look);
    Ok(token)
}

/// What FENCE or TOKEN is replied with.
fn fence(
    d: &mut Decision<'_>,
    key: &Key,
    renewal: &Renewal<'_>,
    look: &Look,
) -> Result<Option<Token>, Refusal> {
    let (owner, mode) = (renewal.owner, renewal.mode);
    let token = match renewal.fence {
        None => return Ok(None),
        Some(Fence::Raise(brought)) => raise(d, key, renewal, brought),
        Some(Fence::New) => {
            require_one_hold(d, key, owner, look)?;
            grant::renew_token(d, key, owner, mode)
        }
    };
    token.map(Some)
}

/// A token is that of one hold: nested ones would go on with the old one, for whoever has that
/// is told of no other.
fn require_one_hold(d: &Decision<'_>, key: &Key, owner: &[u8], look: &Look) -> Result<(), Refusal> {
    let has = modes(d.core, key, owner, look).counts();
    let holds = has.iter().map(|(_, holds)| *holds);
    if holds.fold(0, i64::saturating_add) == 1 {
        return Ok(());
    }
    let (key, owner) = (key.clone(), Owner::from(owner));
    Err(Refusal::ManyHolds { key, owner })
}

/// As for a new hold, but that holds which are renewed may have the tag that they had.
pub fn require_its_tag(
    d: &Decision<'_>,
    keys: &[Key],
    renewal: &Renewal<'_>,
) -> Result<(), Refusal> {
    require_free_tag(d, renewal.notify, |address| {
        is_told_at(d, keys, renewal.owner, renewal.mode, address)
    })
}

/// No token is given for the lock any more that is not greater than this one and than the
/// last that its owner got for it.
fn raise(
    d: &mut Decision<'_>,
    key: &Key,
    renewal: &Renewal<'_>,
    brought: Token,
) -> Result<Token, Refusal> {
    let newest = |entry: &Entry| {
        let (_, newest) = entry.tokens(renewal.owner, renewal.mode).unzip();
        newest.max(entry.hold(renewal.owner).and_then(Hold::token))
    };
    let newest = d.core.locks.get(key).and_then(newest);
    let newest = newest.unwrap_or(Token::BEFORE_FIRST);
    grant::raise_counter(d, key, brought, newest)
}

/// Renews the lease of an owner that holds the lock.
pub fn renew_one(d: &mut Decision<'_>, key: &Key, renewal: &Renewal<'_>, look: &Look) {
    let owner = Owner::from(renewal.owner);
    reconcile::end_first(d, key, &owner);
    leases::set_lease(d, key, &owner, look, d.now.deadline(renewal.lease));
    if let Some(kind) = d.kinds.of(look) {
        kind.renewed(d, key, look);
    }
    d.tell(key, Event::Renewed);
    let holds = modes(d.core, key, &owner, look).counts();
    watchdog::on_renewed(d, key, &owner, &holds, renewal);
    if !renewal.binding().is_empty() {
        // They are this connection's now.
        for (mode, _) in holds {
            d.core.in_flight.let_stand(key, &owner, mode);
        }
    }
}
