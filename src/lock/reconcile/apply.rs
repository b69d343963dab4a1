//! Looks at a key, compares, changes what is known of it, and looks again: the one place
//! that does so. What changes can be a reader whose lease is over, and with it others.

use super::diff::{diff, judge, why_no_lock, Change};
use super::merge::merge;
use super::over::{self, drop_holders, Over};
use super::revive::revive;
use super::Cause;
use super::{parts, pool, reader};
use crate::lock::kind::{presumption, FEW_FIELDS};
use crate::lock::modes::modes;
use crate::lock::table::{Entry, Hold, Party, Shared};
use crate::lock::{
    watchdog, Decision, Event, Foreign, Key, Kind, Look, Mode, Owner, Reason, WakeTarget, Write,
};

/// A look that has changed something is followed by another; no key needs more
/// than a few, whatever somebody has made of it.
const MOST_LOOKS: u32 = 16;

/// The key as `owner` sees it, after all that was found. `heard`: that something happened
/// to the key, and what. Also how holds ended by it.
pub fn bring_in_line(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    heard: Option<Cause>,
) -> (Look, Over) {
    look_and_apply(d, key, owner, heard, false)
}

/// The same for an owner that is to release the lock: if it is known to hold it, it does not
/// matter when it ends.
pub fn bring_in_line_to_release(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    look_and_apply(d, key, owner, None, true).0
}

fn look_and_apply(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    mut heard: Option<Cause>,
    to_release: bool,
) -> (Look, Over) {
    let mut over = Over::default();
    for _ in 0..MOST_LOOKS {
        let known = d.core.locks.get(key);
        let releases = to_release.then_some(owner);
        let beside = known
            .map(|entry| entry.beside(releases))
            .unwrap_or_default();
        let found = judge(known, owner, d.ks.look_with_hint(key, owner, beside));
        if !found.is_free() {
            d.turn_was_used(key);
        }
        let found = parts::judge(d, key, found);
        let mut known = d.core.locks.get(key);
        if !d.core.rules.observes_all && may_be_another(known, &found) {
            d.core.locks.doubt(key);
            known = d.core.locks.get(key);
        }
        let told = heard.take();
        let change = diff(known, owner, &found, told, d.now);
        let mut apply = |change| apply(d, key, owner, (&found, told), change, &mut over);
        let again = change.is_some_and(&mut apply);
        if !again {
            return (as_lock(d, key, found), over);
        }
    }
    let found = d.ks.look(key, owner);
    (judge(d.core.locks.get(key), owner, found), over)
}

/// Whether a plain lock that is only held may have gone and come again, unheard: then it ends
/// at another moment, and its owner holds it once. One without a TTL nobody takes; somebody has
/// PERSISTed it.
fn may_be_another(known: Option<&Entry>, found: &Look) -> bool {
    known.is_some_and(|entry| {
        let is_its_end = found.expires.is_none() || entry.deadline == found.expires;
        let is_the_same = found.kind == Kind::Plain && (is_its_end || found.holds > 1);
        entry.plain().is_some() && !entry.is_heard() && !is_the_same
    })
}

/// A hash with a field `mode` that is somebody's data is no lock.
fn as_lock(d: &mut Decision<'_>, key: &Key, found: Look) -> Look {
    let is_known = || {
        let known = d.core.locks.get(key).map_or(0, Entry::fields);
        known == found.fields || d.core.pools.progress(key).is_some()
    };
    let why = match found.kind {
        Kind::ReadWrite(_) if found.fields == 0 || !is_known() => Foreign::OtherHash,
        Kind::Foreign(Foreign::NoTtl) if found.fields <= FEW_FIELDS => {
            why_no_lock(&found, d.ks.holders(key).len())
        }
        _ => return found,
    };
    let kind = Kind::Foreign(why);
    Look { kind, ..found }
}

/// Applies a change. Whether something was written, or is unknown now, so that another
/// look is due.
fn apply(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    (found, heard): (&Look, Option<Cause>),
    change: Change,
    over: &mut Over,
) -> bool {
    match change {
        Change::Over { cause, free } => {
            over::end(d, key, cause, free, over);
            over.revived || !free
        }
        Change::Emptied => {
            d.write(key, Write::Delete);
            over::end(d, key, Cause::Unknown, true, over);
            true
        }
        Change::OwnerOver if matches!(found.kind, Kind::Permits(_)) => {
            pool::take_in_own(d, key, owner, found);
            true
        }
        Change::OwnerOver => {
            expire_reader(d, key, &Owner::from(owner), Cause::Unknown);
            true
        }
        Change::Holders if found.kind == Kind::Plain => {
            learn_plain(d, key, owner, found);
            false
        }
        Change::Holders => match found.kind {
            Kind::Permits(pool) => {
                parts::learn_permits(d, key, owner, (found, pool), heard.is_some(), over).again
            }
            _ if parts::are_many(d, key, found) => {
                let read = parts::learn_readers(d, key, owner, found, over);
                expire_dead(d, key, read)
            }
            _ => learn_shared(d, key, found, over),
        },
        Change::Presumed(cause) => {
            let end = d.core.locks.get(key).and_then(|entry| entry.deadline);
            let free = found.is_free();
            over.ran_out = free && cause.or_seen(found).event(end, d.now).is_some();
            d.core.locks.set_presumed(key, presumption(found));
            false
        }
        Change::Ends(None) if found.kind == Kind::Plain => {
            d.core.locks.set_deadline(key, found.expires);
            false
        }
        Change::Ends(its) => {
            let before = d.core.locks.shared(key).map_or(0, Shared::permits);
            d.core.locks.change_shared(key, |shared| {
                shared.expires = found.expires;
                shared.change(owner, |party| {
                    if let Some((lease, holds)) = its {
                        party.lease = lease;
                        party.holds = holds;
                    }
                });
            });
            // Somebody has changed the number of an owner's permits, and nothing else.
            let after = d.core.locks.shared(key).map_or(0, Shared::permits);
            pool::count(d, key, after.saturating_sub(before))
        }
    }
}

/// A plain lock is known from the first look at it on, be it found after a restart or one
/// that a script took: then it stays a lock if somebody PERSISTs it, or makes a read/write
/// lock of it.
fn learn_plain(d: &mut Decision<'_>, key: &Key, owner: &[u8], found: &Look) {
    let holder = if found.holds > 0 {
        Some(Owner::from(owner))
    } else {
        let holders = d.ks.holders(key).into_iter();
        let mut plain = holders.filter(|holder| holder.mode == Mode::Exclusive);
        plain.next().map(|holder| holder.owner)
    };
    if let Some(owner) = holder {
        let hold = Hold::found(owner.clone());
        d.core.locks.set_plain(key, hold, found.expires);
        d.joined(key, &owner);
    }
}

/// Reads all holders of a read/write lock. Readers whose lease keys are gone are removed,
/// and so is what was known and is not there.
fn learn_shared(d: &mut Decision<'_>, key: &Key, found: &Look, over: &mut Over) -> bool {
    let holders = d.ks.holders(key);
    let known = d.core.locks.get(key);
    if holders.len() != found.fields {
        // No lock, or no more: a field is no count of holds.
        if known.is_some_and(Entry::is_held) {
            over::end(d, key, Cause::Removed, false, over);
        }
        return false;
    }
    let merged = merge(known, holders, found, d.now);
    if merged.shared.is_half() {
        d.core.away.look_again(key);
    }
    d.core.locks.set_shared(key, merged.shared);
    for (owner, mode) in merged.fewer {
        watchdog::on_lost_in(d, key, &owner, mode, Reason::Deleted);
    }
    for party in merged.vanished {
        let end = party.end(None);
        over::party_ended(d, key, party, Cause::Unknown, end);
    }
    if merged.plain_is_gone {
        if let Some(hold) = d.core.locks.take_plain(key) {
            watchdog::on_lost(d, key, hold, Reason::Deleted);
        }
    }
    let wrote = !merged.dead.is_empty();
    for owner in merged.dead {
        expire_reader(d, key, &owner, Cause::Unknown);
    }
    d.core.locks.tidy(key);
    for owner in merged.joined {
        d.joined(key, &owner);
    }
    d.look_later(key);
    wrote
}

/// Readers that were found dead are removed. Whether another look is due.
pub fn expire_dead(d: &mut Decision<'_>, key: &Key, read: parts::Read) -> bool {
    let any = !read.dead.is_empty();
    for owner in read.dead {
        expire_reader(d, key, &owner, Cause::Unknown);
    }
    read.again || any
}

/// The lease of a reader is over: its field goes, and with the last one the
/// lock. A watchdog's that only stood still is written anew.
pub fn expire_reader(d: &mut Decision<'_>, key: &Key, owner: &Owner, cause: Cause) {
    let Some(party) = d.core.locks.party(key, owner).cloned() else {
        return;
    };
    let end = party.lease.end();
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
    if matches!(found.kind, Kind::ReadWrite(_)) && found.fields > left {
        // Whoever joined by a script of its own may not be known yet.
        let found = bring_in_line(d, key, &[], None).0;
        if matches!(found.kind, Kind::Foreign(_)) || others(d, key, &[]) {
            return true;
        }
    }
    if matches!(d.ks.look(key, &[]).kind, Kind::ReadWrite(_)) {
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
            return reader::any_unread(d, key);
        };
        let plain = entry.plain().map(|hold| hold.owner.clone());
        let party = || entry.shared()?.other_than(owner);
        let Some(other) = plain.filter(|plain| **plain != *owner).or_else(party) else {
            return reader::any_unread(d, key);
        };
        let found = bring_in_line(d, key, &other, None).0;
        // Somebody made something else of it.
        let is_foreign = matches!(found.kind, Kind::Foreign(_));
        if is_foreign || modes(d.core, key, &other, &found).any().is_some() {
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
        gone = shared.change(owner, Party::stop_reading);
    });
    match gone {
        Some(party) => watchdog::on_lost(d, key, party.hold, reason),
        None => watchdog::on_lost_in(d, key, owner, Mode::Read, reason),
    }
    d.core.locks.tidy(key);
}
