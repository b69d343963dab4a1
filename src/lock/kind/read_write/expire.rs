//! Readers whose lease is over, and whoever is left then.

use super::learn_one::any_unread;
use crate::lock::modes::modes;
use crate::lock::reconcile::{bring_in_line, drop_holders, revive, Cause, Parts};
use crate::lock::table::{Entry, Hold};
use crate::lock::{watchdog, Decision, Event, Key, Mode, Owner, Reason, WakeTarget, Write};

/// Readers that were found dead are removed. Whether another look is due.
pub fn expire_dead(d: &mut Decision<'_>, key: &Key, read: Parts) -> bool {
    let any = !read.dead.is_empty();
    for owner in read.dead {
        expire_reader(d, key, &owner, Cause::Unknown);
    }
    read.again || any
}

/// The lease of a reader is over: its field goes, and with the last one the
/// lock. A watchdog's that only stood still is written anew.
pub fn expire_reader(d: &mut Decision<'_>, key: &Key, owner: &Owner, cause: Cause) {
    let Some(hold) = d.core.locks.sharer(key, owner).cloned() else {
        return;
    };
    let end = hold.lease.end();
    let event = cause.event(end, d.now);
    if event == Some(Event::Expired) && revive(d, key, owner, end) {
        return;
    }
    // The last field goes with the hash.
    let fields = d.ks.look(key, owner).fields;
    if fields > 1 {
        let (owner, mode) = (owner.clone(), Mode::Read);
        d.write(key, Write::Drop { owner, mode });
    }
    if let Some(event) = event {
        d.tell(key, event);
    }
    stop_reading(d, key, owner, cause.reason(end, d.now));
    // With the last field all have left, whoever was known: nobody told.
    let is_last = fields == 1;
    let is_held = !is_last && d.core.locks.get(key).is_some_and(Entry::is_held);
    if !is_held && !sweep(d, key, usize::from(is_last)) {
        // Whoever asks may not take it: those who wait are to know.
        d.left_free(key, WakeTarget::OneShared);
    }
    d.look_later(key);
}

/// A read/write lock has lost a holder; whether anybody is left in it. A hash
/// that nobody holds is removed. `left`: so many fields of the holder are in the
/// hash still, to go with it.
pub fn sweep(d: &mut Decision<'_>, key: &Key, left: usize) -> bool {
    let found = d.ks.look(key, &[]);
    if found.kind.is_read_write() && found.fields > left {
        // Whoever joined by a script of its own may not be known yet.
        let found = bring_in_line(d, key, &[], None).0;
        if found.kind.is_foreign() || others(d, key, &[]) {
            return true;
        }
    }
    if d.ks.look(key, &[]).kind.is_read_write() {
        d.write(key, Write::Delete);
    }
    drop_holders(d, key, Reason::Deleted);
    false
}

/// Whether anybody but this owner holds the read/write lock. Readers that are
/// found dead on the way are removed.
pub fn others(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> bool {
    loop {
        let Some(entry) = d.core.locks.get(key) else {
            return any_unread(d, key);
        };
        let plain = entry.plain().map(|hold| hold.owner.clone());
        let hold = || entry.shared()?.other_than(owner);
        let Some(other) = plain.filter(|plain| **plain != *owner).or_else(hold) else {
            return any_unread(d, key);
        };
        let found = bring_in_line(d, key, &other, None).0;
        // Somebody made something else of it.
        if found.kind.is_foreign() || modes(d.core, key, &other, &found).any().is_some() {
            return true;
        }
        let is_known = d.core.locks.hold(key, &other).is_some();
        debug_assert!(!is_known, "who holds nothing is not known to");
        if is_known {
            return true;
        }
    }
}

/// The owner has no read holds any more.
pub fn stop_reading(d: &mut Decision<'_>, key: &Key, owner: &Owner, reason: Reason) {
    let mut gone = None;
    d.core.locks.change_shared(key, |shared| {
        gone = shared.change(owner, Hold::stop_reading);
    });
    match gone {
        Some(hold) => watchdog::on_lost(d, key, hold, reason),
        None => watchdog::on_lost_in(d, key, owner, Mode::Read, reason),
    }
    d.core.locks.tidy(key);
}
