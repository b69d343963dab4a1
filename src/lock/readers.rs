//! Who holds a read/write lock, and what happens when one of them is gone.

use super::table::Entry;
use super::{acquire, expiry, release, renewals, sight, watchdog};
use super::{
    Cause, Core, Decision, Event, Key, Kind, Lease, Mode, Owner, WallMs, Whom, Write, MOST_READS,
};

impl Core {
    /// Whether the owner is known to read under this lock.
    fn reads(&self, key: &Key, owner: &[u8]) -> bool {
        self.locks.knows_reader(key.db, &key.name, owner)
    }
}

/// Whether readers are kept out: by a writer, or by a plain hold that somebody
/// made a read/write lock of.
pub fn keeps_readers_out(d: &mut Decision<'_>, key: &Key) -> bool {
    for _ in 0..2 {
        let Some(entry) = d.core.locks.get(key) else {
            return false;
        };
        let plain = entry.plain().map(|hold| hold.owner.clone());
        let writer = entry.shared().and_then(|s| s.writer().cloned());
        let gone = match (&plain, &writer) {
            (Some(owner), _) if d.ks.look(key, owner).holds > 0 => return true,
            (_, Some(owner)) if d.ks.look(key, owner).writes > 0 => return true,
            (Some(owner), _) | (None, Some(owner)) => owner,
            (None, None) => return false,
        };
        // Another writer may have its place in the hash.
        sight::see(d, key, gone);
    }
    true
}

/// Whether anybody but this owner holds the read/write lock. Readers that are
/// found dead on the way are removed.
pub fn others(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> bool {
    loop {
        let Some(entry) = d.core.locks.get(key) else {
            return false;
        };
        let plain = entry.plain().map(|hold| hold.owner.clone());
        let party = entry.shared().and_then(|s| s.other_than(owner));
        let Some(other) = plain.filter(|plain| **plain != *owner).or(party) else {
            return false;
        };
        let look = d.ks.look(key, &other);
        if d.core.modes(key, &other, &look).any().is_some() {
            return true;
        }
        match look.kind {
            // Somebody made something else of it.
            Kind::Foreign(_) => return true,
            Kind::ReadWrite(_) if look.holds > 0 && d.core.reads(key, &other) => {
                bury(d, key, &other, Cause::Unknown);
            }
            Kind::Free | Kind::Plain | Kind::ReadWrite(_) => {
                forget_party(d, key, &other);
                // Another owner may have its place in the hash.
                sight::see(d, key, owner);
            }
        }
    }
}

/// A read/write lock has lost a holder; whether anybody is left in it. A hash
/// that nobody holds is removed. `left`: so many fields of the holder are in the
/// hash still, to go with it.
pub fn sweep(d: &mut Decision<'_>, key: &Key, left: usize) -> bool {
    let look = d.ks.look(key, &[]);
    if matches!(look.kind, Kind::ReadWrite(_)) && look.fields > left {
        // Whoever joined by a script of its own may not be known yet.
        if d.core.fields_known(key) != look.fields {
            sight::learn(d, key, &look);
        }
        let is_lock = d.core.fields_known(key) == d.ks.look(key, &[]).fields;
        if !is_lock || others(d, key, &[]) {
            return true;
        }
    }
    if matches!(d.ks.look(key, &[]).kind, Kind::ReadWrite(_)) {
        d.write(Write::Delete { key: key.clone() });
    }
    expiry::forsake(d, key);
    false
}

/// Shortens the hash to the reader that stays longest, after one has left.
pub fn shorten(d: &mut Decision<'_>, key: &Key) {
    let Some(end) = d.ks.look(key, &[]).expires else {
        return;
    };
    // A plain hold that somebody put readers beside lasts as long as the hash.
    if d.core
        .locks
        .get(key)
        .is_some_and(|entry| entry.plain().is_some())
    {
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
pub fn bury(d: &mut Decision<'_>, key: &Key, owner: &Owner, cause: Cause) {
    let shared = d.core.locks.shared(key);
    let Some(party) = shared.and_then(|shared| shared.party(owner)).cloned() else {
        return;
    };
    let end = match party.lease {
        Lease::Until(at) => Some(at),
        Lease::Gone | Lease::Endless | Lease::Away => None,
    };
    let event = d.core.event_of(cause, end, d.now);
    if event == Some(Event::Expired) && renewals::revive(d, key, owner, end) {
        return;
    }
    // The last field goes with the hash.
    let is_last = d.ks.look(key, owner).fields == 1;
    if !is_last {
        d.write(Write::Drop {
            key: key.clone(),
            owner: owner.clone(),
            mode: Mode::Read,
        });
    }
    if let Some(event) = event {
        acquire::tell(d, key, event);
    }
    if party.writes {
        watchdog::on_lost_in(d, key, owner, Mode::Read);
    }
    reads_no_more(d, key, owner);
    // With the last field all have left, whoever was known: nobody told.
    let is_held = !is_last && d.core.locks.get(key).is_some_and(Entry::is_held);
    if !is_held && !sweep(d, key, usize::from(is_last)) {
        // Whoever asks may not take it: those who wait are to know.
        release::left_free(d, key, Whom::OneShared);
    }
    d.look_later(key);
}

/// The owner has no read holds any more, by no doing of its own.
pub fn reads_no_more(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    let mut gone = None;
    d.core.locks.change_shared(key, |shared| {
        let writes = shared.party(owner).is_some_and(|party| party.writes);
        if writes {
            shared.change(owner, |party| {
                party.reads = false;
                party.lease = Lease::Gone;
                party.holds = 0;
            });
        } else {
            gone = shared.remove(owner);
        }
    });
    match gone {
        Some(party) => watchdog::on_lost(d, key, &party.hold),
        None => {
            watchdog::on_all_released(d.core, key, owner, Mode::Read);
        }
    }
    d.core.locks.tidy(key);
}

/// An owner that was known is not in the hash any more.
fn forget_party(d: &mut Decision<'_>, key: &Key, owner: &Owner) {
    let mut gone = None;
    let plain = d
        .core
        .locks
        .get(key)
        .and_then(|entry| entry.plain_of(owner));
    if plain.is_some() {
        gone = d.core.locks.take_plain(key);
    }
    d.core.locks.change_shared(key, |shared| {
        if let Some(party) = shared.remove(owner) {
            gone = Some(party.hold);
        }
    });
    if let Some(hold) = gone {
        watchdog::on_lost(d, key, &hold);
    }
    d.core.locks.tidy(key);
}

/// Writes the holds of one owner anew: so many reads, so many writes.
pub fn rewrite_party(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    (reads, writes): (i64, i64),
    at: WallMs,
) {
    let look = d.ks.look(key, owner);
    let mode = if writes > 0 { Mode::Write } else { Mode::Read };
    if look.kind == Kind::Free {
        let key = key.clone();
        d.write(Write::SetMode { key, mode });
    }
    for (mode, has, holds) in [
        (Mode::Write, look.writes, writes),
        (Mode::Read, look.holds, reads),
    ] {
        if has == 0 && holds > 0 {
            d.write(Write::Count {
                key: key.clone(),
                owner: owner.clone(),
                mode,
                holds,
                by: holds,
            });
        }
    }
    for index in 1..=reads.min(MOST_READS) {
        d.write(Write::Lease {
            key: key.clone(),
            owner: owner.clone(),
            index,
            at: Some(at),
        });
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
