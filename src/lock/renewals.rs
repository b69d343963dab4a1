//! The renewals of watched leases: when they are due, and what each of them writes.

use super::table::own_lease;
use super::watchdog::{self, Bond};
use super::{expiry, readers, shared, sight, waiting};
use super::{Cause, Decision, Key, Kind, Lease, Mode, Owner, WallMs, Write};

/// A renewal that has to wait for lease keys on another node is tried again after so
/// many ms.
const RETRY_MS: i64 = 100;

/// Renews these leases. Whether that was so much that some are left, and due still.
pub fn renew_watched(d: &mut Decision<'_>, due: &[Bond]) -> bool {
    let before = d.size();
    let mut due = due.iter();
    for (key, owner) in due.by_ref() {
        renew_watch(d, key, owner);
        if d.is_long(before) {
            break;
        }
    }
    due.len() > 0
}

/// Renews a watched lease: to its full length from now, but not beyond
/// `rlock.watchdog-max`, and never to an earlier moment.
fn renew_watch(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    let look = sight::look(d, key, owner);
    let its = d
        .core
        .locks
        .get(key)
        .is_some_and(|e| e.plain_of(owner).is_some());
    if its && look.kind == Kind::Plain && look.holds == 0 {
        // Somebody else has it, and nobody told.
        expiry::ended(d, key, Cause::Removed);
        waiting::settle_pending(d);
    }
    let held = d.core.locks.hold(key, owner);
    let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
        return;
    };
    let (lease, bound) = (watch.lease, watch.bound);
    let full = d.now.deadline(lease);
    let to = bound.map_or(full, |bound| full.min(bound));
    let away = look.lease == Lease::Away;
    match own_lease(&look) {
        Lease::Until(at) if at < to && !away => shared::set_lease(d, key, owner, &look, to),
        // Its lease keys were given another end by hand than the hash, or are on
        // another node.
        Lease::Until(_) | Lease::Endless | Lease::Away
            if look.expires.is_some_and(|end| end < to) =>
        {
            d.expire_at(key, look.expires, Some(to));
            d.core
                .locks
                .change_shared(key, |shared| shared.expires = Some(to));
        }
        Lease::Until(_) | Lease::Gone | Lease::Endless | Lease::Away => {}
    }
    let end = d.core.locks.lease_end(key, owner);
    let last = bound.is_some_and(|bound| bound <= full);
    let now = d.now;
    watchdog::reschedule(d.core, key, owner, |watch| {
        watch.schedule(now);
        if last {
            watch.next = None;
        }
        if away {
            // As soon as they are here. If that is not before its end, it is
            // written anew then.
            let soon = now.deadline(RETRY_MS);
            watch.next = watch.next.map(|at| at.min(soon).min(end.unwrap_or(soon)));
        }
    });
}

/// A watched lease ran out because the server stood still: it is written anew
/// with the same token, for nobody can have come between. Whether it was.
pub fn revive(d: &mut Decision<'_>, key: &Key, owner: &Owner, ended: Option<WallMs>) -> bool {
    let held = d.core.locks.hold(key, owner);
    let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
        return false;
    };
    let full = d.now.deadline(watch.lease);
    let at = watch.bound.map_or(full, |bound| full.min(bound));
    let now_ms = d.now.wall_ms();
    // Ended before its time, it was ended by somebody.
    let in_time = ended.is_some_and(|ended| ended < now_ms);
    if !in_time || !watch.stalled(ended) || at < now_ms {
        return false;
    }
    let plain = watch.holds(Mode::Exclusive);
    let (reads, writes) = (watch.holds(Mode::Read), watch.holds(Mode::Write));
    if plain > 0 {
        d.write(Write::Take {
            key: key.clone(),
            owner: owner.clone(),
            holds: plain,
            at,
        });
        d.core.locks.set_deadline(key, Some(at));
        return true;
    }
    readers::rewrite_party(d, key, owner, (reads, writes), at);
    true
}
