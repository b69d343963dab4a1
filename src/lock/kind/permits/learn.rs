//! The permits of a lock: who holds them, and what comes back when an owner's lease is over.
//!
//! What is out is counted in the hash itself, so no request needs to know who holds the rest.
//! All are read beside that (`parts.rs`), so that each lease ends in time, and so that what is out
//! is counted again where others have changed the hash.

use crate::lock::pools::Seen;
use crate::lock::reconcile::{drop_holders, hold_ended, read_parts, revive};
use crate::lock::reconcile::{Cause, Over};
use crate::lock::table::{Hold, Shared};
use crate::lock::{
    Decision, Event, Holder, Key, Lease, Look, Mode, Owner, Pool, Reason, WakeTarget, Write,
};

/// It is not known who holds these permits, or others have changed the hash: those who hold
/// them are read, all or some of them. Whether something was written.
pub fn learn(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    (found, heard): (&Look, Option<Cause>),
    over: &mut Over,
) -> bool {
    let Some(pool) = found.pool() else {
        return false;
    };
    let known = d.core.locks.shared(key).and_then(Shared::pool);
    let known = known.or_else(|| match d.core.pools.seen(key) {
        Some(Seen::Out(pool)) => Some(pool),
        Some(Seen::Unknown(_)) | None => None,
    });
    let before = d.size();
    if found.holds > 0 {
        take_in_own(d, key, owner, found);
    } else if let Some(hold) = vanish(d, key, &Owner::from(owner)) {
        if known == Some(pool) {
            count(d, key, hold.holds.saturating_neg());
        }
    }
    // As it was, but for what is done here, and it is read on by the timer.
    let is_read_on = d.core.pools.progress(key).is_some();
    let any = d.core.locks.shared(key).is_some();
    if known == Some(pool) && heard.is_none() && is_read_on && any {
        return d.size() != before;
    }
    let Some(pool) = d.ks.look(key, &[]).pool() else {
        return true;
    };
    if any {
        d.core.locks.change_shared(key, |shared| {
            shared.set_pool(pool);
            shared.expires = found.expires;
        });
    }
    d.core.pools.begin(key, Seen::Out(pool));
    read_parts(d, key, over).again || d.size() != before
}

/// All who hold permits are known: as many are out as they have.
pub fn all_read(d: &mut Decision<'_>, key: &Key, found: &Look) {
    let shared = d.core.locks.shared(key);
    let held = shared.map_or((0, 0), |shared| (shared.fields(), shared.permits()));
    if let Some(pool) = found.pool() {
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
    let Some(pool) = d.ks.look(key, &[]).pool() else {
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
            .change_shared(key, |shared| shared.set_pool(pool));
    }
}

/// This owner was found to hold permits.
pub fn take_in(d: &mut Decision<'_>, key: &Key, holder: Holder) {
    let (owner, holds, lease) = (holder.owner, holder.holds, holder.lease);
    let known = d.core.locks.sharer(key, &owner);
    let is_new = known.is_none();
    if known.is_none_or(|hold| (hold.holds, hold.lease) != (holds, lease)) {
        let found = d.ks.look(key, &[]);
        let Some(pool) = found.pool() else {
            return;
        };
        d.core.locks.change_shared(key, |shared| {
            shared.set_pool(pool);
            shared.expires = found.expires;
            let known = shared.remove(&owner);
            let mut hold = known.unwrap_or_else(|| Hold::of(owner.clone()));
            hold.set_permits(holds, lease);
            shared.put(hold);
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
    let Some(hold) = d.core.locks.sharer(key, owner).cloned() else {
        return;
    };
    let end = hold.lease.end();
    let event = cause.event(end, d.now);
    if event == Some(Event::Expired) && revive(d, key, owner, end) {
        return;
    }
    let found = d.ks.look(key, owner);
    give_back(d, key, owner, &found, found.holds);
    forget(d, key, owner);
    hold_ended(d, key, hold, cause, end);
    if d.ks.look(key, &[]).is_free() {
        drop_holders(d, key, Reason::Deleted);
        d.left_free(key, WakeTarget::One);
    }
    d.look_later(key);
}

/// The owner, as it was found, has so many permits fewer. The hash goes with the last field.
pub fn give_back(d: &mut Decision<'_>, key: &Key, owner: &Owner, found: &Look, permits: i64) {
    let Some(pool) = found.pool() else {
        return;
    };
    let left = found.holds.saturating_sub(permits);
    if found.holds > 0 && left < 1 && found.fields == 1 {
        d.write(key, Write::Delete);
        return;
    }
    let pool = pool.plus(found.holds.min(permits).saturating_neg());
    let held = Some(left).filter(|left| *left > 0).zip(found.lease.end());
    if found.holds > 0 {
        let permit = Write::Permit {
            owner: owner.clone(),
            held,
            pool: Some(pool),
        };
        d.write(key, permit);
        see(d, key, pool);
    }
}

/// An owner that was known to hold permits does not any more.
pub fn forget(d: &mut Decision<'_>, key: &Key, owner: &Owner) -> Option<Hold> {
    let mut gone = None;
    d.core
        .locks
        .change_shared(key, |shared: &mut Shared| gone = shared.remove(owner));
    d.core.locks.tidy(key);
    gone
}

/// Somebody has taken away the permits of an owner by hand. What was known of it.
pub fn vanish(d: &mut Decision<'_>, key: &Key, owner: &Owner) -> Option<Hold> {
    let hold = d.core.locks.sharer(key, owner).cloned()?;
    forget(d, key, owner);
    hold_ended(d, key, hold.clone(), Cause::Removed, None);
    d.look_later(key);
    Some(hold)
}
