//! A watched lease that ran out because the server stood still is written anew.

use crate::lock::table::Shared;
use crate::lock::{Decision, Key, Kind, Lease, Mode, Owner, Pool, WallMs, Write, MOST_READS};

/// Writes it anew with the same token, for nobody can have come between. Whether it was.
pub fn revive(d: &mut Decision<'_>, key: &Key, owner: &Owner, ended: Option<WallMs>) -> bool {
    let held = d.core.locks.hold(key, owner);
    let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
        return false;
    };
    let at = watch.renewed_to(d.now);
    if !watch.stalled(ended, d.now) || at < d.now.wall_ms() {
        return false;
    }
    let plain = watch.holds(Mode::Exclusive);
    let permits = watch.holds(Mode::Permits);
    let (reads, writes) = (watch.holds(Mode::Read), watch.holds(Mode::Write));
    if plain > 0 {
        let (owner, holds) = (owner.clone(), plain);
        d.write(key, Write::Take { owner, holds, at });
        d.core.locks.set_deadline(key, Some(at));
        return true;
    }
    if permits > 0 {
        return rewrite_permits(d, key, owner, permits, at);
    }
    rewrite_party(d, key, owner, reads, writes, at);
    true
}

/// Writes the permits of one owner anew, if nobody else has them. Whether they were. Of a limit
/// that was lowered more are out than there are: of those who had them nothing is taken.
fn rewrite_permits(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    permits: i64,
    at: WallMs,
) -> bool {
    let look = d.ks.look(key, owner);
    let shared = d.core.locks.shared(key);
    let known = shared.and_then(|shared| shared.pool);
    let were_out = shared.map_or(0, Shared::permits);
    let is_theirs = |pool: Pool| pool.plus(permits).out <= were_out;
    let pool = match (look.kind, known) {
        (Kind::Permits(pool), _) if look.holds > 0 => pool,
        (Kind::Permits(pool), _) if pool.available() >= permits => pool.plus(permits),
        (Kind::Permits(pool), Some(known)) if known.is_as(pool) && is_theirs(pool) => {
            pool.plus(permits)
        }
        (Kind::Free, Some(pool)) => Pool {
            out: permits,
            ..pool
        },
        _ => return false,
    };
    let held = Some((look.holds.max(permits), at));
    let (owner, to) = (owner.clone(), Some(pool));
    d.write(
        key,
        Write::Permit {
            owner: owner.clone(),
            held,
            pool: to,
        },
    );
    let expires = match look.kind {
        Kind::Free => Some(at),
        _ => look.expires.map(|end| end.max(at)),
    };
    d.expire_at(key, look.expires, expires);
    d.core.locks.change_shared(key, |shared| {
        (shared.pool, shared.expires) = (to, expires);
        shared.change(&owner, |party| {
            party.set_permits(look.holds.max(permits), Lease::Until(at));
        });
    });
    true
}

/// Writes the holds of one owner anew: so many reads, so many writes.
fn rewrite_party(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    reads: i64,
    writes: i64,
    at: WallMs,
) {
    let look = d.ks.look(key, owner);
    let mode = if writes > 0 { Mode::Write } else { Mode::Read };
    if look.is_free() {
        d.write(key, Write::SetMode(mode));
    }
    for (mode, has, holds) in [
        (Mode::Write, look.writes, writes),
        (Mode::Read, look.holds, reads),
    ] {
        if has == 0 && holds > 0 {
            d.count(key, owner, mode, holds, holds);
        }
    }
    for index in 1..=reads.min(MOST_READS) {
        let (owner, at) = (owner.clone(), Some(at));
        d.write(key, Write::Lease { owner, index, at });
    }
    let expires = match look.kind {
        Kind::Free => Some(at),
        _ => look.expires.map(|end| end.max(at)),
    };
    d.expire_at(key, look.expires, expires);
    d.core.locks.change_shared(key, |shared| {
        shared.expires = expires;
        shared.change(owner, |party| {
            party.reads = reads > 0;
            party.holds = reads;
            party.writes = writes > 0;
            party.lease = if reads > 0 {
                Lease::Until(at)
            } else {
                Lease::Gone
            };
        });
    });
}
