//! What happens when a lease runs out, and when a key changes under us.
//!
//! A key's event is a hint, the key is the truth: whatever was heard, the key is
//! looked at again. The hint only says why a key that is gone went.

use super::release::end_leases;
use super::table::{Hold, Party};
use super::{
    acquire, head, heard, readers, release, renewals, sight, subscribers, waiting, watchdog,
};
use super::{Core, Decision, Event, Key, Kind, Lease, Look, Now, Owner, WallMs, Whom};

/// The server looks at its clock once before it calls us, and can take a lease to
/// run that is over by ours. It is due again as long as it may be that.
const CLOCKS_APART_MS: i64 = 10;

/// Why a key that is gone went, as far as we were told.
///
/// In order of weight: of several things heard of a key the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Nobody told, or only of another TTL: its deadline decides whether the
    /// lease ran out.
    Unknown,
    /// Somebody's command removed or replaced it.
    Removed,
    /// The server evicted it for want of memory.
    Evicted,
    /// The server expired it.
    Expired,
}

impl Cause {
    /// What the look itself tells.
    pub(super) fn seen_by(look: &Look) -> Self {
        if look.ran_out {
            Self::Expired
        } else {
            Self::Unknown
        }
    }
}

impl Core {
    /// The locks on which a deadline has passed, at most so many, earliest first.
    /// Each is due for a [`Core::expire`].
    pub fn due(&self, now: Now, most: usize) -> Vec<Key> {
        self.locks.due(now, most)
    }

    /// Whether the owner is known to read under this lock.
    pub fn knows_reader(&self, db: i32, name: &[u8], owner: &[u8]) -> bool {
        self.locks.knows_reader(db, name, owner)
    }

    /// What is told of a lease that ended at this moment, for this cause.
    pub(super) fn event_of(&self, cause: Cause, end: Option<WallMs>, now: Now) -> Option<Event> {
        let overdue = end.is_some_and(|at| at < now.wall_ms());
        match cause {
            Cause::Expired => Some(Event::Expired),
            Cause::Evicted => Some(Event::Evicted),
            Cause::Unknown if overdue => Some(Event::Expired),
            Cause::Unknown | Cause::Removed => None,
        }
    }
}

/// Forgets the key's holds, for they are lost: connections that watched them are
/// closed, and no event tells of it. Also for a key that is not this server's any
/// more (its slot moved away): nothing that happens to it is ours to act on, and
/// its waiters are sent on by the server.
pub fn forsake(d: &mut Decision<'_>, key: &Key) {
    for hold in d.core.locks.forget_holders(key) {
        watchdog::on_lost(d, key, &hold);
    }
}

/// Deadlines of these keys have passed: their own, or those of readers. All that
/// has ended is ended before any of it is handed on. Whether that was so much that
/// some are left, and due still.
pub fn expire(d: &mut Decision<'_>, keys: &[Key]) -> bool {
    watchdog::begin_anew(d);
    let before = d.size();
    let mut keys = keys.iter();
    for key in keys.by_ref() {
        expire_one(d, key);
        if d.is_long(before) {
            break;
        }
    }
    keys.len() > 0
}

fn expire_one(d: &mut Decision<'_>, key: &Key) {
    heard::attend(d, key);
    if !end_readers(d, key) {
        review_key(d, key, Cause::Unknown);
    }
    // Whatever is there has not ended: it is not due again and again.
    let deadline = d.core.locks.get(key).and_then(|entry| entry.deadline());
    let long_ago = d.now.wall_ms().plus_ms(-CLOCKS_APART_MS);
    if deadline.is_some_and(|at| at < long_ago) {
        let expires = d.ks.look(key, &[]).expires;
        d.core
            .locks
            .set_deadline(key, expires.filter(|at| *at >= d.now.wall_ms()));
        d.core.locks.tidy(key);
    }
}

/// Readers whose lease is over leave; whether there were any.
pub fn end_readers(d: &mut Decision<'_>, key: &Key) -> bool {
    let shared = d.core.locks.shared(key);
    let over = shared.map_or_else(Vec::new, |shared| shared.over(d.now.wall_ms()));
    for owner in &over {
        sight::see(d, key, owner);
    }
    if !over.is_empty() {
        readers_left(d, key);
    }
    !over.is_empty()
}

/// Readers have left by no request of theirs.
fn readers_left(d: &mut Decision<'_>, key: &Key) {
    if d.ks.look(key, &[]).kind == Kind::Free && !d.woken.contains(key) {
        release::left_free(d, key, Whom::OneShared);
    }
    d.look_later(key);
}

/// Looks at a key again that may have changed without rlock's doing.
pub fn review_key(d: &mut Decision<'_>, key: &Key, cause: Cause) {
    if d.core.subscribers.is_turn(key)
        && (cause > Cause::Unknown || d.ks.look(key, &[]).kind != Kind::Free)
    {
        subscribers::turn_was_used(d, key);
    }
    let Some(entry) = d.core.locks.get(key) else {
        return;
    };
    let known = entry.plain().map(|hold| hold.owner.clone());
    let was_shared = entry.shared().is_some();
    let whom = match entry.shared().map(|shared| shared.writer()) {
        None => Whom::One,
        Some(None) => Whom::OneShared,
        Some(Some(_)) => Whom::AllShared,
    };
    let waited_for = entry.is_waited_for();
    let look = d.ks.look(key, known.as_deref().unwrap_or_default());
    let cause = match cause {
        Cause::Unknown => Cause::seen_by(&look),
        told => told,
    };
    match look.kind {
        Kind::Free => {
            let ended = ended_by(d, key, cause, true);
            if !ended.revived && ended.ran_out {
                release::left_free(d, key, whom);
            }
            d.look_later(key);
        }
        Kind::Plain => {
            // Removed and there again: another hold, be it the same owner's.
            let replaced = known.is_some() && look.holds == 0;
            if was_shared || replaced || cause > Cause::Unknown {
                ended_by(d, key, cause.max(Cause::Removed), false);
            }
            d.core.locks.set_deadline(key, look.expires);
            if waited_for {
                waiting::know_holder(d, key);
                judge_holders(d, key);
            }
        }
        Kind::ReadWrite(_) => {
            if cause > Cause::Unknown {
                ended_by(d, key, cause, false);
            }
            if look.fields > 0 {
                sight::learn(d, key, &look);
            }
            // A plain hold that is not there any more.
            let look = sight::see(d, key, known.as_deref().unwrap_or_default());
            if matches!(look.kind, Kind::Foreign(_)) {
                ended_by(d, key, Cause::Removed, false);
            }
            judge_holders(d, key);
            d.look_later(key);
        }
        // Waiters stay until the name is free; the holder has lost the lock.
        Kind::Foreign(_) => {
            ended_by(d, key, cause.max(Cause::Removed), false);
            if waited_for {
                d.core.locks.set_foreign_deadline(key, look.expires);
            }
        }
    }
    d.core.locks.tidy(key);
}

/// Something happened to a lease key of a reader.
pub fn review_reader(d: &mut Decision<'_>, key: &Key, owner: &[u8], cause: Cause) {
    if !d.core.locks.knows_reader(key.db, &key.name, owner) {
        return;
    }
    let look = d.ks.look(key, owner);
    let is_over =
        matches!(look.kind, Kind::ReadWrite(_)) && look.holds > 0 && look.lease == Lease::Gone;
    let by_hand = matches!(cause, Cause::Removed | Cause::Evicted);
    if is_over {
        readers::bury(d, key, &Owner::from(owner), cause);
    } else if by_hand && look.kind == Kind::Free {
        // The lock has run out since.
        if let Some(event) = d.core.event_of(cause, None, d.now) {
            acquire::tell(d, key, event);
        }
        readers::reads_no_more(d, key, &Owner::from(owner));
        sight::see(d, key, owner);
    } else {
        sight::see(d, key, owner);
    }
    readers_left(d, key);
}

/// Somebody who waits may have become a holder by another way than ours.
pub fn judge_holders(d: &mut Decision<'_>, key: &Key) {
    if !head::is_waited_for(d.core, key) {
        return;
    }
    for holder in d.ks.holders(key) {
        d.joined(key, &holder.owner);
    }
}

/// How holds have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Over {
    /// One was written anew.
    revived: bool,
    /// Some lease has run out, or was evicted.
    ran_out: bool,
}

/// The key is gone, or no lock any more: tells how its holds ended and forgets
/// them. Whether one was written anew.
pub fn ended(d: &mut Decision<'_>, key: &Key, cause: Cause) -> bool {
    ended_by(d, key, cause, cause != Cause::Removed).revived
}

/// `free`: nothing is there now, so that what only stood still can be written
/// anew.
fn ended_by(d: &mut Decision<'_>, key: &Key, cause: Cause, free: bool) -> Over {
    let mut over = Over::default();
    let Some(entry) = d.core.locks.get(key) else {
        return over;
    };
    let (deadline, foreign) = (entry.deadline(), entry.is_foreign());
    let was_held = !foreign && (deadline.is_some() || entry.is_held());
    let plain = entry.plain().cloned().filter(|hold| hold.watch.is_some());
    let shared = entry.shared().cloned();
    d.look_later(key);
    if !was_held {
        d.core.locks.forget_holders(key);
        return over;
    }
    let Some(shared) = shared else {
        let event = d.core.event_of(cause, deadline, d.now);
        let expired = |_: &Hold| free && event == Some(Event::Expired);
        if let Some(hold) = plain.filter(expired) {
            over.revived = renewals::revive(d, key, &hold.owner, deadline);
        }
        if !over.revived {
            over.ran_out = event.is_some();
            if let Some(event) = event {
                acquire::tell(d, key, event);
            }
            forsake(d, key);
        }
        return over;
    };
    for party in shared.parties() {
        let end = end_of(party, shared.expires);
        let event = d.core.event_of(cause, end, d.now);
        let watched = party.hold.watch.is_some();
        let owner = &party.hold.owner;
        if free && watched && event == Some(Event::Expired) {
            over.revived |= renewals::revive(d, key, owner, end);
            let look = d.ks.look(key, owner);
            if look.lease != Lease::Gone || look.writes > 0 {
                continue;
            }
        }
        d.core.locks.change_shared(key, |known| {
            known.remove(owner);
        });
        if free {
            end_leases(d, key, owner, 1, party.holds);
        }
        over.ran_out |= event.is_some();
        party_gone(d, key, party, event);
    }
    if !over.revived {
        forsake(d, key);
    }
    over
}

/// An owner of a read/write lock is not in it any more.
pub fn party_ended(d: &mut Decision<'_>, key: &Key, party: &Party, cause: Cause) {
    let event = d.core.event_of(cause, end_of(party, None), d.now);
    party_gone(d, key, party, event);
}

fn party_gone(d: &mut Decision<'_>, key: &Key, party: &Party, event: Option<Event>) {
    if let Some(event) = event {
        acquire::tell(d, key, event);
    }
    let hold: &Hold = &party.hold;
    watchdog::on_lost(d, key, hold);
}

/// When a party's lease ends, or ended.
fn end_of(party: &Party, hash: Option<WallMs>) -> Option<WallMs> {
    match party.lease {
        Lease::Until(at) => Some(hash.map_or(at, |hash| hash.min(at))),
        Lease::Gone | Lease::Endless | Lease::Away => hash,
    }
}
