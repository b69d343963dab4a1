//! When the lease of an owner ends that holds a lock, and the lease keys of a reader's
//! holds, one for each: all of them change together.

use crate::lock::modes::modes;
use crate::lock::table::Shared;
use crate::lock::{Decision, Key, Kind, Lease, Look, Mode, Owner, WallMs, Write, MOST_READS};

/// Sets the lease of an owner that holds the lock, in every mode.
pub fn set_lease(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, at: WallMs) {
    let has = modes(d.core, key, owner, look);
    if has.has(Mode::Exclusive) {
        d.expire_at(key, None, Some(at));
        know_end(d, key, look, Some(at));
        return;
    }
    if has.has(Mode::Permits) {
        return set_lease_of_permits(d, key, owner, look, at);
    }
    if has.has(Mode::Read) {
        renew(d, key, owner, look.holds, at);
    }
    let mut expires = Some(at);
    d.core.locks.change_shared(key, |shared| {
        shared.change(owner, |party| {
            if party.reads {
                party.lease = Lease::Until(at);
            }
        });
        // The hash stays for the reader that stays longest.
        if !has.has(Mode::Write) {
            let end = look.expires.map(|end| end.max(at));
            // As long as all of them are known.
            let last = shared.last_end().filter(|_| shared.fields() >= look.fields);
            expires = last.or(end);
        }
        shared.expires = expires;
    });
    d.expire_at(key, look.expires, expires);
}

/// The same for permits, whose lease stands in the owner's field. The key stays for the owner
/// that stays longest.
fn set_lease_of_permits(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, at: WallMs) {
    let (held, pool) = (Some((look.holds, at)), None);
    let owner = owner.clone();
    d.write(
        key,
        Write::Permit {
            owner: owner.clone(),
            held,
            pool,
        },
    );
    let expires = look.expires.map(|end| end.max(at));
    d.expire_at(key, look.expires, expires);
    d.core.locks.change_shared(key, |shared| {
        shared.expires = expires;
        shared.change(&owner, |party| party.lease = Lease::Until(at));
    });
}

/// A key that somebody has PERSISTed ends with the last of those who hold permits of it, if
/// all of them are known.
pub fn end_with_last(d: &mut Decision<'_>, key: &Key, look: &Look) {
    let shared = d.core.locks.shared(key);
    let shared = shared.filter(|shared| shared.fields() == look.fields);
    if let Some(end) = shared.and_then(Shared::last_end) {
        d.expire_at(key, None, Some(end));
        d.core
            .locks
            .change_shared(key, |shared| shared.expires = Some(end));
    }
}

/// It is known when the key ends. Others may be in a read/write lock by now, with
/// leases of their own.
pub fn know_end(d: &mut Decision<'_>, key: &Key, look: &Look, at: Option<WallMs>) {
    let locks = &mut d.core.locks;
    match look.kind {
        Kind::ReadWrite(_) | Kind::Permits(_) => {
            locks.change_shared(key, |shared| shared.expires = at);
        }
        _ => locks.set_deadline(key, at),
    }
}

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
