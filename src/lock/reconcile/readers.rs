//! Who holds a read/write lock, and what happens when one of them is gone.

use super::revive::revive;
use super::{forsake, read, Cause};
use crate::lock::freed::left_free;
use crate::lock::modes::modes;
use crate::lock::table::Entry;
use crate::lock::{watchdog, Decision, Event, Key, Kind, Lease, Mode, Owner, Whom, Write};

/// Whether readers are kept out: by a writer, or by a plain hold that somebody
/// made a read/write lock of.
pub fn keeps_readers_out(d: &mut Decision<'_>, key: &Key) -> bool {
    let mut asked = None;
    loop {
        let entry = d.core.locks.get(key);
        let plain = entry.and_then(|entry| Some(&entry.plain()?.owner));
        let writer = entry.and_then(|entry| entry.shared()?.writer());
        let Some(owner) = plain.or(writer).cloned() else {
            return false;
        };
        // Another writer may have its place in the hash.
        if asked.as_ref() == Some(&owner) {
            return true;
        }
        let is_plain = plain.is_some();
        let found = read(d, key, &owner);
        if found.writes > 0 || (is_plain && found.holds > 0) {
            return true;
        }
        asked = Some(owner);
    }
}

/// Whether anybody but this owner holds the read/write lock. Readers that are
/// found dead on the way are removed.
pub fn others(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> bool {
    loop {
        let Some(entry) = d.core.locks.get(key) else {
            return false;
        };
        let plain = entry.plain().map(|hold| hold.owner.clone());
        let party = || entry.shared()?.other_than(owner);
        let Some(other) = plain.filter(|plain| **plain != *owner).or_else(party) else {
            return false;
        };
        let found = read(d, key, &other);
        // Somebody made something else of it.
        let is_foreign = matches!(found.kind, Kind::Foreign(_));
        if is_foreign || modes(d.core, key, &other, &found).any().is_some() {
            return true;
        }
        debug_assert!(d.core.locks.hold(key, &other).is_none());
    }
}

/// A read/write lock has lost a holder; whether anybody is left in it. A hash
/// that nobody holds is removed. `left`: so many fields of the holder are in the
/// hash still, to go with it.
pub fn sweep(d: &mut Decision<'_>, key: &Key, left: usize) -> bool {
    let found = d.ks.look(key, &[]);
    if matches!(found.kind, Kind::ReadWrite(_)) && found.fields > left {
        // Whoever joined by a script of its own may not be known yet.
        let found = read(d, key, &[]);
        if matches!(found.kind, Kind::Foreign(_)) || others(d, key, &[]) {
            return true;
        }
    }
    if matches!(d.ks.look(key, &[]).kind, Kind::ReadWrite(_)) {
        d.write(Write::Delete { key: key.clone() });
    }
    forsake(d, key);
    false
}

/// Shortens the hash to the reader that stays longest, after one has left.
pub fn shorten(d: &mut Decision<'_>, key: &Key) {
    let Some(end) = d.ks.look(key, &[]).expires else {
        return;
    };
    // A plain hold that somebody put readers beside lasts as long as the hash.
    let entry = d.core.locks.get(key);
    if entry.is_some_and(|entry| entry.plain().is_some()) {
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

/// The lease of a reader is over: its field goes, and with the last one the
/// lock. A watchdog's that only stood still is written anew.
pub fn expire_reader(d: &mut Decision<'_>, key: &Key, owner: &Owner, cause: Cause) {
    let Some(party) = d.core.locks.party(key, owner).cloned() else {
        return;
    };
    let end = match party.lease {
        Lease::Until(at) => Some(at),
        Lease::Gone | Lease::Endless | Lease::Away => None,
    };
    let event = cause.event(end, d.now);
    if event == Some(Event::Expired) && revive(d, key, owner, end) {
        return;
    }
    // The last field goes with the hash.
    let fields = d.ks.look(key, owner).fields;
    if fields > 1 {
        d.write(Write::Drop {
            key: key.clone(),
            owner: owner.clone(),
            mode: Mode::Read,
        });
    }
    if let Some(event) = event {
        d.tell(key, event);
    }
    if party.writes {
        watchdog::on_lost_in(d, key, owner, Mode::Read);
    }
    stop_reading(d, key, owner);
    // With the last field all have left, whoever was known: nobody told.
    let is_last = fields == 1;
    let is_held = !is_last && d.core.locks.get(key).is_some_and(Entry::is_held);
    if !is_held && !sweep(d, key, usize::from(is_last)) {
        // Whoever asks may not take it: those who wait are to know.
        left_free(d, key, Whom::OneShared);
    }
    d.look_later(key);
}

/// The owner has no read holds any more.
pub fn stop_reading(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    let mut gone = None;
    d.core.locks.change_shared(key, |shared| {
        gone = shared.change(owner, |party| {
            party.reads = false;
            party.lease = Lease::Gone;
            party.holds = 0;
        });
    });
    match gone {
        Some(party) => watchdog::on_lost(d, key, &party.hold),
        None => {
            watchdog::on_all_released(d.core, key, owner, Mode::Read);
        }
    }
    d.core.locks.tidy(key);
}
