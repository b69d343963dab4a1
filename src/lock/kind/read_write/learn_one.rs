//! Who holds a read/write lock, one by one: there may be very many.

use super::known::{is_left_over, lease_now};
use crate::lock::reconcile::{hold_ended, Cause};
use crate::lock::table::{Entry, Hold};
use crate::lock::{watchdog, Decision, Key, Lease, Look, Mode, Owner, Reason};

/// So many more fields than are known.
pub fn unknown(d: &Decision<'_>, key: &Key, found: &Look) -> i64 {
    let known = d.core.locks.get(key).map_or(0, Entry::fields);
    let count = |fields| i64::try_from(fields).unwrap_or(i64::MAX);
    count(found.fields).saturating_sub(count(known))
}

/// Whether there may be holders that are not known.
pub fn any_unread(d: &mut Decision<'_>, key: &Key) -> bool {
    if d.core.pools.progress(key).is_none() {
        return false;
    }
    let found = d.ks.look(key, &[]);
    found.kind.is_read_write() && unknown(d, key, &found) > 0
}

/// What is known of one owner is as it was found from now on. Whether it is a reader whose lease
/// keys are gone.
pub fn learn_one(d: &mut Decision<'_>, key: &Key, owner: &Owner, found: &Look) -> bool {
    let entry = d.core.locks.get(key);
    let reads = found.holds > 0 && !is_left_over(entry, owner, found.lease);
    let writes = found.writes > 0;
    let lease = lease_now(entry, owner, found.lease, d.now);
    let was = d.core.locks.sharer(key, owner).cloned();
    if !reads && !writes {
        if let Some(was) = was {
            vanish(d, key, was);
        }
        return false;
    }
    let had = |mode| was.as_ref().is_some_and(|was| was.has(mode));
    let has = |mode| if mode == Mode::Read { reads } else { writes };
    let modes = [Mode::Read, Mode::Write];
    let new = modes.into_iter().any(|mode| has(mode) && !had(mode));
    let fewer = modes.into_iter().filter(|mode| had(*mode) && !has(*mode));
    let fewer: Vec<Mode> = fewer.collect();
    let ended = was.as_ref().map_or(Lease::Gone, |was| was.lease);
    let before = d.core.locks.get(key).map_or(0, Entry::fields);
    d.core.locks.change_shared(key, |shared| {
        shared.expires = found.expires;
        let known = shared.remove(owner);
        let mut hold = known.unwrap_or_else(|| Hold::of(owner.clone()));
        for mode in &fewer {
            match mode {
                Mode::Read => hold.stop_reading(),
                _ => hold.stop_writing(),
            }
        }
        (hold.reads, hold.writes) = (reads, writes);
        if reads {
            // When it ended is known as it was.
            hold.lease = Some(lease).filter(|at| *at != Lease::Gone).unwrap_or(ended);
            hold.holds = found.holds;
        }
        shared.put(hold);
    });
    learned(d, key, before);
    for mode in fewer {
        watchdog::on_lost_in(d, key, owner, mode, Reason::Deleted);
    }
    if lease == Lease::Migrating {
        d.core.away.look_again(key);
    }
    if new {
        d.joined(key, owner);
    }
    reads && lease == Lease::Gone
}

/// Somebody has taken away all fields of an owner by hand.
fn vanish(d: &mut Decision<'_>, key: &Key, was: Hold) {
    let before = d.core.locks.get(key).map_or(0, Entry::fields);
    d.core.locks.change_shared(key, |shared| {
        shared.remove(&was.owner);
    });
    d.core.locks.tidy(key);
    learned(d, key, before);
    let end = was.end(None);
    hold_ended(d, key, was, Cause::Unknown, end);
    d.look_later(key);
}

/// More fields are known than were, or fewer.
fn learned(d: &mut Decision<'_>, key: &Key, before: usize) {
    let count = |fields| i64::try_from(fields).unwrap_or(i64::MAX);
    let after = d.core.locks.get(key).map_or(0, Entry::fields);
    let more = count(after).saturating_sub(count(before));
    d.core.pools.learned(key, more);
}

/// All are read. A plain hold that somebody put readers beside may have gone.
pub fn all_read(d: &mut Decision<'_>, key: &Key) {
    let plain = d.core.locks.get(key).and_then(Entry::plain);
    if let Some(owner) = plain.map(|hold| hold.owner.clone()) {
        if d.ks.look(key, &owner).holds == 0 {
            let hold = d.core.locks.take_plain(key);
            if let Some(hold) = hold {
                watchdog::on_lost(d, key, hold, Reason::Deleted);
            }
        }
    }
    d.core.locks.tidy(key);
    shorten(d, key);
    d.look_later(key);
}

/// Shortens the hash to the reader that stays longest, after one has left.
pub fn shorten(d: &mut Decision<'_>, key: &Key) {
    let Some(end) = d.ks.look(key, &[]).expires else {
        return;
    };
    // A plain hold that somebody put readers beside lasts as long as the hash.
    let entry = d.core.locks.get(key);
    if entry.is_some_and(|entry| entry.plain().is_some()) || any_unread(d, key) {
        return;
    }
    let mut to = end;
    d.core.locks.change_shared(key, |shared| {
        if shared.writer().is_none() {
            to = shared.last_end().map_or(end, |last| last.min(end));
            shared.expires = Some(to);
        }
    });
    d.expire_at(key, Some(end), Some(to));
}
