//! What was known of a key against what was found: a pure function.

use super::Cause;
use crate::lock::kind::presumption;
use crate::lock::table::Entry;
use crate::lock::{Foreign, Kind, Lease, Look, Now, Pool};

/// How what is known of a key has to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All holds that are known are over. `free`: nothing is there now, so that what only
    /// stood still can be written anew.
    Over { cause: Cause, free: bool },
    /// They are over, and the hash without a field of any holder goes after them.
    Emptied,
    /// The own lease of the owner that looks is over.
    OwnerOver,
    /// Who holds it cannot be told from this owner's fields: all are to be read.
    Holders,
    /// What is presumed to be a lock ends at another moment, or is none any more.
    Presumed(Cause),
    /// The lock ends at another moment, or so does the own lease of this owner: with how
    /// many holds.
    Ends(Option<(Lease, i64)>),
}

/// What this owner found, or that it is no lock: a hash without a TTL may be somebody's data.
/// Only one that is known for a lock is taken for one, for somebody has PERSISTed it; a plain one
/// if the holder is who was known: the lock may have gone unheard, and its name be used again.
pub fn judge(known: Option<&Entry>, owner: &[u8], found: Look) -> Look {
    let could_be = matches!(
        found.kind,
        Kind::Plain | Kind::ReadWrite(_) | Kind::Permits(_)
    );
    let is_known = |entry: &Entry| match (found.kind, entry.plain()) {
        (Kind::Plain, Some(hold)) => found.as_known || (found.holds > 0 && *hold.owner == *owner),
        _ => entry.shared().is_some(),
    };
    if !could_be || found.expires.is_some() || known.is_some_and(is_known) {
        return found;
    }
    Look {
        kind: Kind::Foreign(Foreign::NoTtl),
        ..found
    }
}

/// Why a hash without a TTL is no lock, of which so many fields count holds.
pub fn why_no_lock(found: &Look, holders: usize) -> Foreign {
    if found.fields > 0 && found.fields == holders {
        Foreign::NoTtl
    } else {
        Foreign::OtherHash
    }
}

/// Compares what is known with what this owner found. `heard`: that something happened
/// to the key, and what. `None`: nothing has to change.
pub fn diff(
    known: Option<&Entry>,
    owner: &[u8],
    found: &Look,
    heard: Option<Cause>,
    now: Now,
) -> Option<Change> {
    let Some(entry) = known.filter(|entry| !entry.is_presumed()) else {
        return diff_unknown(known, found, heard);
    };
    let any = entry.is_held() || entry.deadline.is_some();
    let cause = heard.unwrap_or(Cause::Unknown);
    let over = |cause, free| any.then_some(Change::Over { cause, free });
    let by_hand = cause.max(Cause::Removed);
    match found.kind {
        Kind::Free => over(cause.or_seen(found), true),
        // SET over a lock is no event that rlock hears everywhere.
        Kind::Foreign(_) if entry.foreign => None,
        Kind::Foreign(_) => over(cause.max(Cause::Overwritten), false),
        // Gone and there again: another hold, be it the same owner's.
        _ if cause > Cause::Unknown && any => over(by_hand, false),
        Kind::Plain if entry.shared().is_some() || is_replaced(entry, owner, found) => {
            over(cause.max(Cause::Overwritten), false)
        }
        Kind::Plain if !entry.is_held() => Some(Change::Holders),
        Kind::Plain => {
            let moved = any && entry.deadline != found.expires;
            moved.then_some(Change::Ends(None))
        }
        Kind::ReadWrite(_) | Kind::Permits(_) if is_of_other_kind(entry, found) => {
            over(cause.max(Cause::Overwritten), false)
        }
        // All holders are gone. If none is known it is somebody's data, if it has no permits.
        Kind::Permits(_) if found.fields == 0 => Some(Change::Emptied),
        Kind::ReadWrite(_) if found.fields == 0 => entry.is_held().then_some(Change::Emptied),
        Kind::Permits(_) if heard.is_some() => Some(Change::Holders),
        Kind::Permits(pool) => diff_permits(entry, owner, found, pool, now),
        Kind::ReadWrite(_) if heard.is_some() && !are_as_many(entry, found) => {
            Some(Change::Holders)
        }
        Kind::ReadWrite(_) => diff_shared(entry, owner, found, now),
    }
}

/// Of a key of which no more is known than that it could be a lock, if that.
fn diff_unknown(presumed: Option<&Entry>, found: &Look, heard: Option<Cause>) -> Option<Change> {
    // Nothing else looks so: all who held permits are gone.
    if matches!(found.kind, Kind::Permits(_)) && found.fields == 0 {
        return Some(Change::Emptied);
    }
    let is_lock = !matches!(found.kind, Kind::Free | Kind::Foreign(_));
    let held = is_lock && found.fields > 0;
    // What is heard of a key is no reason to read all who hold it.
    if held && (presumed.is_none() || heard.is_none()) {
        return Some(Change::Holders);
    }
    let entry = presumed?;
    let known = entry.presumed().zip(entry.deadline);
    let is_same = known.is_some() && known == presumption(found);
    (!is_same).then(|| Change::Presumed(heard.unwrap_or(Cause::Unknown)))
}

/// There are very many holders, and as many as were known: they are not all read again at each
/// thing that is heard of the key. Where one came for another, that shows when the other's
/// lease is over.
fn are_as_many(entry: &Entry, found: &Look) -> bool {
    entry.are_many() && entry.fields() == found.fields
}

/// A lock with permits was known for another one, or the reverse.
fn is_of_other_kind(entry: &Entry, found: &Look) -> bool {
    let has_permits = matches!(found.kind, Kind::Permits(_));
    let had_permits = entry.shared().is_some_and(|shared| shared.pool.is_some());
    entry.is_held() && has_permits != had_permits
}

/// A plain lock is held by another owner than was known.
fn is_replaced(entry: &Entry, owner: &[u8], found: &Look) -> bool {
    let is_its = entry.plain_of(owner).is_some();
    entry.plain().is_some() && is_its != (found.holds > 0)
}

fn diff_shared(entry: &Entry, owner: &[u8], found: &Look, now: Now) -> Option<Change> {
    let party = entry.shared().and_then(|shared| shared.party(owner));
    let known_to_read = party.is_some_and(|party| party.reads) || entry.plain_of(owner).is_some();
    let known_to_write = party.is_some_and(|party| party.writes);
    let as_found = (found.holds > 0, found.writes > 0);
    if entry.fields() != found.fields || (known_to_read, known_to_write) != as_found {
        return Some(Change::Holders);
    }
    let reads = found.holds > 0 && !is_left_over(Some(entry), owner, found.lease);
    let lease = lease_now(Some(entry), owner, found.lease, now);
    if reads && lease == Lease::Gone {
        return Some(Change::OwnerOver);
    }
    let shared = entry.shared()?;
    let is_its = |(lease, holds)| party.is_some_and(|p| (p.lease, p.holds) == (lease, holds));
    let its = reads.then_some((lease, found.holds));
    let same = its.is_none_or(is_its) && shared.expires == found.expires;
    (!same).then_some(Change::Ends(its))
}

/// What was written to the hash by others is taken to be right if they have counted it in
/// what is out; then all is to be read.
fn diff_permits(entry: &Entry, owner: &[u8], found: &Look, pool: Pool, now: Now) -> Option<Change> {
    let shared = entry.shared();
    let party = shared.and_then(|shared| shared.party(owner));
    if found.holds > 0 && found.lease < Lease::Until(now.wall_ms()) {
        return Some(Change::OwnerOver);
    }
    let known = party.map_or(0, |party| party.holds);
    let is_gone = (known > 0) != (found.holds > 0) && !owner.is_empty();
    let known_pool = shared.and_then(|shared| shared.pool);
    if entry.fields() != found.fields || is_gone || known_pool != Some(pool) {
        return Some(Change::Holders);
    }
    let its = (found.holds > 0).then_some((found.lease, found.holds));
    let is_its = |its| party.is_some_and(|party| (party.lease, party.holds) == its);
    let same = its.is_none_or(is_its) && shared?.expires == found.expires;
    (!same).then_some(Change::Ends(its))
}

/// Whether the owner's field is that of a plain lock which somebody has made a
/// read/write lock of: an exclusive hold until the hash ends.
pub fn is_left_over(known: Option<&Entry>, owner: &[u8], lease: Lease) -> bool {
    lease.is_missing() && known.is_some_and(|entry| entry.plain_of(owner).is_some())
}

/// When a reader's lease ends, after this was found of its lease keys. What is not here
/// of a lock whose slot is on its way is not gone: it lives until the end that was known.
pub fn lease_now(known: Option<&Entry>, owner: &[u8], found: Lease, now: Now) -> Lease {
    if found != Lease::Migrating {
        return found;
    }
    let party = known.and_then(|entry| entry.shared()?.party(owner));
    match party.map(|party| party.lease) {
        // Nobody can have renewed it meanwhile: that needs the hash, which is here.
        Some(Lease::Until(at)) if at < now.wall_ms() => Lease::Gone,
        Some(Lease::Gone) | None => Lease::Migrating,
        Some(known) => known,
    }
}
