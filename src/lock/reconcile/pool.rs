//! The permits of a lock: who holds them, read in parts, and what comes back when an owner's
//! lease is over.
//!
//! What is out is counted in the hash itself, so no request needs to know who holds the rest.
//! All are read beside that, so that each lease ends in time, and so that what is out is
//! counted again where others have changed the hash.

use super::over::{self, drop_holders, party_ended, Over};
use super::revive::revive;
use super::Cause;
use crate::lock::pools::Progress;
use crate::lock::table::{Entry, Party, Shared};
use crate::lock::{
    Decision, Event, Foreign, Holder, Key, Kind, Lease, Look, Mode, Owner, Pool, Reason, Whom,
    Write,
};

/// So many parts are read by one look: enough for all who hold a small pool.
const PARTS: usize = 3;

/// So many who are known are looked at in one part.
const KNOWN: usize = 64;

/// A hash in which some field was found that is no permit is no lock while it is there.
pub fn judge(d: &mut Decision<'_>, key: &Key, found: Look) -> Look {
    let Kind::Permits(_) = found.kind else {
        d.core.pools.forget(key);
        return found;
    };
    let Some(field) = d.core.pools.wrong(key).cloned() else {
        return found;
    };
    if !d.ks.is_wrong_permit(key, &field) {
        d.core.pools.forget(key);
        return found;
    }
    let kind = Kind::Foreign(Foreign::OtherHash);
    Look { kind, ..found }
}

/// It is not known who holds these permits, or others have changed the hash: those who hold
/// them are read, all or some of them. Whether something was written.
pub fn learn(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    (found, pool): (&Look, Pool),
    heard: bool,
    over: &mut Over,
) -> bool {
    let known = d.core.locks.shared(key).and_then(|shared| shared.pool);
    let known = known.or_else(|| d.core.pools.seen(key));
    let before = d.size();
    if found.holds > 0 {
        take_in_own(d, key, owner, found);
    } else if let Some(party) = d.core.locks.party(key, owner).cloned() {
        vanish(d, key, &party);
        if known == Some(pool) {
            count(d, key, party.holds.saturating_neg());
        }
    }
    // As it was, but for what is done here, and it is read on by the timer.
    let is_read_on = d.core.pools.progress(key).is_some();
    let any = d.core.locks.shared(key).is_some();
    if known == Some(pool) && !heard && is_read_on && any {
        return d.size() != before;
    }
    let Kind::Permits(pool) = d.ks.look(key, &[]).kind else {
        return true;
    };
    if any {
        let (pool, expires) = (Some(pool), found.expires);
        d.core.locks.change_shared(key, |shared| {
            (shared.pool, shared.expires) = (pool, expires);
        });
    }
    d.core.pools.begin(key, pool);
    read_parts(d, key, over) || d.size() != before
}

/// Reads some parts. Whether the hash turned out to be no lock, or something was written.
pub fn read_parts(d: &mut Decision<'_>, key: &Key, over: &mut Over) -> bool {
    let before = d.size();
    for _ in 0..PARTS {
        let progress = d.core.pools.progress(key).cloned();
        let wrong = match progress {
            None => break,
            Some(Progress::Fields(cursor)) => read_fields(d, key, cursor),
            Some(Progress::Known(behind)) => {
                look_at_known(d, key, behind);
                None
            }
        };
        if let Some(wrong) = wrong {
            if d.core.locks.get(key).is_some_and(Entry::is_held) {
                over::end(d, key, Cause::Overwritten, false, over);
            }
            d.core.pools.is_wrong(key, wrong);
            return true;
        }
    }
    d.look_later(key);
    d.size() != before
}

/// Reads some fields of the hash; one of them that is no permit.
fn read_fields(d: &mut Decision<'_>, key: &Key, cursor: u64) -> Option<Owner> {
    let part = d.ks.some_permits(key, cursor);
    if part.wrong.is_some() {
        return part.wrong;
    }
    for holder in part.holders {
        take_in(d, key, holder);
    }
    let next = match part.next {
        Some(cursor) => Progress::Fields(cursor),
        None => Progress::Known(None),
    };
    go_on(d, key, next);
    None
}

/// Looks whether some who are known are there still, as far as more are known than there are
/// fields. Behind the last of them all are read.
fn look_at_known(d: &mut Decision<'_>, key: &Key, behind: Option<Owner>) {
    let fields = d.ks.look(key, &[]).fields;
    let shared = d.core.locks.shared(key);
    let some = shared.filter(|shared| shared.fields() > fields);
    let some = some
        .into_iter()
        .flat_map(|s| s.parties_behind(behind.as_deref()));
    let some: Vec<Party> = some.take(KNOWN).cloned().collect();
    for party in &some {
        if d.ks.look(key, &party.hold.owner).holds == 0 {
            vanish(d, key, party);
        }
    }
    match some.last() {
        Some(last) => go_on(d, key, Progress::Known(Some(last.hold.owner.clone()))),
        None => all_read(d, key),
    }
}

/// Those who hold the lock are read so far, if it is still one.
fn go_on(d: &mut Decision<'_>, key: &Key, progress: Progress) {
    match d.ks.look(key, &[]).kind {
        Kind::Permits(pool) => d.core.pools.put(key, progress, pool),
        _ => d.core.pools.are_read(key),
    }
}

/// All who hold permits are known: as many are out as they have.
fn all_read(d: &mut Decision<'_>, key: &Key) {
    d.core.pools.are_read(key);
    let found = d.ks.look(key, &[]);
    let shared = d.core.locks.shared(key);
    let held = shared.map_or((0, 0), |shared| (shared.fields(), shared.permits()));
    if let Kind::Permits(pool) = found.kind {
        if held.0 == found.fields {
            count(d, key, held.1.saturating_sub(pool.out));
        }
    }
}

/// So many more are out than the hash says, or fewer. Whether something was written.
pub fn count(d: &mut Decision<'_>, key: &Key, permits: i64) -> bool {
    if permits == 0 {
        return false;
    }
    let Kind::Permits(pool) = d.ks.look(key, &[]).kind else {
        return false;
    };
    let pool = pool.plus(permits);
    d.write(key, Write::SetPool(pool));
    see(d, key, pool);
    d.look_later(key);
    true
}

/// This is what the hash says of its permits.
pub fn see(d: &mut Decision<'_>, key: &Key, pool: Pool) {
    if d.core.locks.shared(key).is_some() {
        d.core
            .locks
            .change_shared(key, |shared| shared.pool = Some(pool));
    }
}

/// This owner was found to hold permits.
fn take_in(d: &mut Decision<'_>, key: &Key, holder: Holder) {
    let (owner, holds, lease) = (holder.owner, holder.holds, holder.lease);
    let known = d.core.locks.party(key, &owner);
    let is_new = known.is_none();
    if known.is_none_or(|party| (party.holds, party.lease) != (holds, lease)) {
        let found = d.ks.look(key, &[]);
        let Kind::Permits(pool) = found.kind else {
            return;
        };
        d.core.locks.change_shared(key, |shared| {
            (shared.pool, shared.expires) = (Some(pool), found.expires);
            let known = shared.remove(&owner);
            let mut party = known.unwrap_or_else(|| Party::found(owner.clone()));
            party.set_permits(holds, lease);
            shared.put(party);
        });
    }
    if lease < Lease::Until(d.now.wall_ms()) {
        expire(d, key, &owner, Cause::Unknown);
    } else if is_new {
        d.joined(key, &owner);
    }
}

/// The owner that looks was found to hold permits; if its lease is over they come back.
pub fn take_in_own(d: &mut Decision<'_>, key: &Key, owner: &[u8], found: &Look) {
    let own = Holder {
        owner: Owner::from(owner),
        mode: Mode::Permits,
        holds: found.holds,
        lease: found.lease,
    };
    take_in(d, key, own);
}

/// The lease of an owner's permits is over: they come back, and with the last of them the lock
/// is free. A watchdog's that only stood still is written anew.
fn expire(d: &mut Decision<'_>, key: &Key, owner: &Owner, cause: Cause) {
    let Some(party) = d.core.locks.party(key, owner).cloned() else {
        return;
    };
    let end = party.lease.end();
    let event = cause.event(end, d.now);
    if event == Some(Event::Expired) && revive(d, key, owner, end) {
        return;
    }
    let found = d.ks.look(key, owner);
    give_back(d, key, owner, &found, found.holds);
    forget(d, key, owner);
    party_ended(d, key, party, cause, end);
    if d.ks.look(key, &[]).kind == Kind::Free {
        drop_holders(d, key, Reason::Deleted);
        d.left_free(key, Whom::One);
    }
    d.look_later(key);
}

/// The owner, as it was found, has so many permits fewer. The hash goes with the last field.
pub fn give_back(d: &mut Decision<'_>, key: &Key, owner: &Owner, found: &Look, permits: i64) {
    let Kind::Permits(pool) = found.kind else {
        return;
    };
    let left = found.holds.saturating_sub(permits);
    if found.holds > 0 && left < 1 && found.fields == 1 {
        d.write(key, Write::Delete);
        return;
    }
    let pool = pool.plus(found.holds.min(permits).saturating_neg());
    let held = Some(left).filter(|left| *left > 0).zip(found.lease.end());
    let (owner, pool) = (owner.clone(), Some(pool));
    if found.holds > 0 {
        d.write(key, Write::Permit { owner, held, pool });
        d.core.locks.change_shared(key, |shared| shared.pool = pool);
    }
}

/// An owner that was known to hold permits does not any more.
pub fn forget(d: &mut Decision<'_>, key: &Key, owner: &Owner) -> Option<Party> {
    let mut gone = None;
    d.core
        .locks
        .change_shared(key, |shared: &mut Shared| gone = shared.remove(owner));
    d.core.locks.tidy(key);
    gone
}

/// Somebody has taken away the permits of an owner by hand.
fn vanish(d: &mut Decision<'_>, key: &Key, party: &Party) {
    forget(d, key, &party.hold.owner);
    party_ended(d, key, party.clone(), Cause::Removed, None);
    d.look_later(key);
}
