//! Holds that are over by no request of rlock's.

use super::cause::{Cause, Over};
use super::revive::revive;
use crate::lock::kind::read_write::lease_keys;
use crate::lock::table::{Ended, Entry, Hold, Shared, Why};
use crate::lock::{watchdog, Decision, Event, Key, Lease, Reason, Slot, WallMs};

/// Forgets the key's holds, for they are lost: those they were bound to are told, and no
/// event tells of it. Also for a key that is not this server's any
/// more (its slot moved away): nothing that happens to it is ours to act on, and
/// its waiters are sent on by the server.
pub fn drop_holders(d: &mut Decision<'_>, key: &Key, reason: Reason) {
    if d.core.locks.are_many(key) {
        return end_many(d, key, None, (Why::Lost(reason), false));
    }
    for hold in d.forget_holders(key) {
        watchdog::on_lost(d, key, hold, reason);
    }
}

/// A lock has ended that very many hold. What follows for each of those who do so with others is
/// to come. `end`: when it would have ended; `leases`: lease keys go too.
pub fn end_many(d: &mut Decision<'_>, key: &Key, end: Option<WallMs>, (why, leases): (Why, bool)) {
    if let Some(hold) = d.core.locks.take_plain(key) {
        lose(d, key, hold, end, why);
    }
    d.core.locks.end_in_pieces(key, why, leases);
}

/// What follows for some of very many whose lock has ended: for so many.
pub fn end_some(d: &mut Decision<'_>, most: usize) {
    for _ in 0..most {
        let Some(ended) = d.core.locks.next_ended() else {
            return;
        };
        end_one(d, ended);
    }
}

/// The same for an owner that comes to hold the lock again before its turn.
pub fn end_first(d: &mut Decision<'_>, key: &Key, owner: &[u8]) {
    if let Some(ended) = d.core.locks.take_ended(key, owner) {
        end_one(d, ended);
    }
}

fn end_one(d: &mut Decision<'_>, ended: Ended) {
    let Ended {
        key,
        db,
        hold,
        end,
        why,
        leases,
    } = ended;
    let owner = &hold.owner;
    // Others may have made a reader of it again, and its lease keys are that one's then.
    let at = Key { db, ..key.clone() };
    if leases && d.ks.slot(&at) != Slot::Others && d.ks.look(&at, owner).holds == 0 {
        lease_keys::end(d, &at, owner, 1..=hold.holds);
    }
    if let Why::Found(cause, then) = why {
        if let Some(event) = cause.event(end, then) {
            d.tell(&key, event);
        }
    }
    lose(d, &key, hold, end, why);
}

/// Whomever a hold was bound to is told why it was lost.
fn lose(d: &mut Decision<'_>, key: &Key, hold: Hold, end: Option<WallMs>, why: Why) {
    match why {
        Why::Found(cause, then) => watchdog::on_lost(d, key, hold, cause.reason(end, then)),
        Why::Lost(reason) => watchdog::on_lost(d, key, hold, reason),
        Why::Forced(by) => watchdog::on_forced(d, key, hold, by),
    }
}

/// The key is gone, or no lock any more, or another one: tells how its holds ended and
/// forgets them. `free`: nothing is there now, so that what only stood still can be
/// written anew.
pub fn end(d: &mut Decision<'_>, key: &Key, cause: Cause, free: bool, over: &mut Over) {
    let Some(entry) = d.core.locks.get(key) else {
        return;
    };
    let (deadline, foreign) = (entry.deadline, entry.foreign);
    let was_held = !foreign && (deadline.is_some() || entry.is_held());
    let first = entry.shared().and_then(Shared::first_end);
    let event = cause.event(first, d.now);
    let may_stay = free && event == Some(Event::Expired);
    if d.core.locks.are_many(key) && was_held && !(may_stay && is_any_late(d, key)) {
        d.look_later(key);
        over.ran_out |= event.is_some();
        return end_many(d, key, deadline, (Why::Found(cause, d.now), free));
    }
    let is_watched = entry.holds().any(|hold| hold.watch.is_some());
    let plain = entry.plain().map(|hold| hold.owner.clone());
    let shared = entry.shared().filter(|_| is_watched).cloned();
    d.look_later(key);
    if !was_held {
        d.forget_holders(key);
        return;
    }
    if !is_watched {
        return end_unwatched(d, key, (cause, free), over);
    }
    let revived = match shared {
        None => {
            let event = cause.event(deadline, d.now);
            let expired = free && event == Some(Event::Expired);
            let revived = expired && plain.is_some_and(|owner| revive(d, key, &owner, deadline));
            if let Some(event) = event.filter(|_| !revived) {
                over.ran_out = true;
                d.tell(key, event);
            }
            revived
        }
        Some(shared) => end_each(d, key, &shared, (cause, free), over),
    };
    over.revived |= revived;
    if !revived {
        drop_holders(d, key, cause.reason(deadline, d.now));
    }
}

/// Whether a lease of a holder's was to be renewed by now: the server may only have stood still.
fn is_any_late(d: &Decision<'_>, key: &Key) -> bool {
    let now = d.now.wall_ms();
    if d.core
        .watchdogs
        .next_renewal()
        .is_none_or(|next| next > now)
    {
        return false;
    }
    let mut holds = d.core.locks.get(key).into_iter().flat_map(Entry::holds);
    holds.any(|hold| {
        let watch = hold.watch.as_ref();
        watch.is_some_and(|watch| watch.stalled(Some(now), d.now))
    })
}

/// The same where nobody is to be told but by an event: there can be very many.
fn end_unwatched(d: &mut Decision<'_>, key: &Key, (cause, free): (Cause, bool), over: &mut Over) {
    d.all_parted(key);
    let holders = d.core.locks.end_holders(key);
    let Some(shared) = holders.shared else {
        if let Some(event) = cause.event(holders.deadline, d.now) {
            over.ran_out = true;
            d.tell(key, event);
        }
        return;
    };
    for hold in shared.holds() {
        if free && hold.reads {
            lease_keys::end(d, key, &hold.owner, 1..=hold.holds);
        }
        if let Some(event) = cause.event(hold.end(shared.expires), d.now) {
            over.ran_out = true;
            d.tell(key, event);
        }
    }
}

/// The same for the holders of a lock that several may hold. Whether one was written anew.
fn end_each(
    d: &mut Decision<'_>,
    key: &Key,
    shared: &Shared,
    (cause, free): (Cause, bool),
    over: &mut Over,
) -> bool {
    let mut revived = false;
    for hold in shared.holds() {
        let end = hold.end(shared.expires);
        let event = cause.event(end, d.now);
        let watched = hold.watch.is_some();
        let owner = &hold.owner;
        if free && watched && event == Some(Event::Expired) {
            revived |= revive(d, key, owner, end);
            let look = d.ks.look(key, owner);
            if look.lease != Lease::Gone || look.writes > 0 {
                continue;
            }
        }
        d.core.locks.change_shared(key, |known| {
            known.remove(owner);
        });
        if free && hold.reads {
            lease_keys::end(d, key, owner, 1..=hold.holds);
        }
        over.ran_out |= event.is_some();
        hold_ended(d, key, hold.clone(), cause, end);
    }
    revived
}

/// An owner of a lock that several may hold is not in it any more.
pub fn hold_ended(d: &mut Decision<'_>, key: &Key, hold: Hold, cause: Cause, end: Option<WallMs>) {
    if let Some(event) = cause.event(end, d.now) {
        d.tell(key, event);
    }
    watchdog::on_lost(d, key, hold, cause.reason(end, d.now));
}
