//! Looking at a key: what was known of it is brought in line with what it is.

use super::{expiry, heard, readers, subscribers, waiting, watchdog};
use std::collections::BTreeMap;

use super::head::{self, Next};
use super::table::{Entry, Hold, Party, Shared};
use super::{Cause, Core, Decision, Foreign, Key, Kind, Lease, Look, Mode, Owner, Write};

/// A look that has changed something is followed by another; no key needs more
/// than a few, whatever somebody has made of it.
const MOST_LOOKS: u32 = 16;

impl Core {
    /// The owner is known otherwise than it stands in the hash.
    fn differs(&self, key: &Key, owner: &[u8], look: &Look) -> bool {
        let Some(entry) = self.locks.get(key) else {
            return look.holds > 0 || look.writes > 0;
        };
        let party = entry.shared().and_then(|shared| shared.party(owner));
        let reads = party.is_some_and(|party| party.reads) || entry.plain_of(owner).is_some();
        let writes = party.is_some_and(|party| party.writes);
        (reads, writes) != (look.holds > 0, look.writes > 0)
    }

    pub(super) fn fields_known(&self, key: &Key) -> usize {
        self.locks.get(key).map_or(0, Entry::fields)
    }

    /// Whether the owner's field is that of a plain lock which somebody has made a
    /// read/write lock of: an exclusive hold until the hash ends.
    pub(super) fn is_left_over(&self, key: &Key, owner: &[u8], lease: Lease) -> bool {
        let plain = self.locks.get(key).and_then(|entry| entry.plain_of(owner));
        plain.is_some() && lease.is_missing()
    }
}

/// The key as `owner` sees it, after what is due on it has happened: an ended
/// hold is told of, and a free lock goes to the head of its queue.
pub fn look(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    let mut look = see(d, key, owner);
    if matches!(look.kind, Kind::ReadWrite(_)) && expiry::end_readers(d, key) {
        look = see(d, key, owner);
    }
    if !head::is_waited_for(d.core, key) {
        return look;
    }
    let one = match head::next(d.core, key) {
        // Who waits for several keys has had its look at the others.
        Some(Next::Waiter(id)) => d.core.queues.get(id).is_some_and(|w| !w.is_many()),
        Some(Next::Subscribers) => true,
        None => false,
    };
    let is_free = look.kind == Kind::Free && one;
    if !is_free && !d.work.dirty.contains(key) {
        return look;
    }
    d.work.dirty.insert(key.clone());
    waiting::settle_pending(d);
    see(d, key, owner)
}

/// As `look`, but without a look at the queue.
pub fn see(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    heard::attend(d, key);
    let mut tries = MOST_LOOKS;
    loop {
        let look = d.ks.look(key, owner);
        if look.kind != Kind::Free {
            subscribers::turn_was_used(d, key);
        }
        tries = tries.saturating_sub(1);
        if align(d, key, owner, &look) && tries > 0 {
            continue;
        }
        return match look.kind {
            // A hash with a field `mode` that is somebody's data.
            Kind::ReadWrite(_) if look.fields == 0 || d.core.fields_known(key) != look.fields => {
                Look {
                    kind: Kind::Foreign(Foreign::OtherHash),
                    ..look
                }
            }
            _ => look,
        };
    }
}

/// Brings what is known in line with the look. Whether it wrote, so that
/// another look is due.
fn align(d: &mut Decision<'_>, key: &Key, owner: &[u8], look: &Look) -> bool {
    if matches!(look.kind, Kind::ReadWrite(_)) && look.fields == 0 {
        // All holders are gone. If none is known it is somebody's data.
        let known = d.core.locks.get(key).is_some_and(Entry::is_held);
        if known {
            d.write(Write::Delete { key: key.clone() });
            expiry::ended(d, key, Cause::Unknown);
        }
        return known;
    }
    let Some(entry) = d.core.locks.get(key) else {
        return match look.kind {
            Kind::ReadWrite(_) => learn(d, key, look),
            _ => false,
        };
    };
    let known = entry.is_held() || entry.deadline().is_some();
    match look.kind {
        Kind::Free if known => expiry::ended(d, key, Cause::seen_by(look)),
        // SET over a lock is no event that rlock hears everywhere.
        Kind::Foreign(_) if known && !entry.is_foreign() => expiry::ended(d, key, Cause::Removed),
        Kind::Plain if entry.shared().is_some() => expiry::ended(d, key, Cause::Removed),
        Kind::ReadWrite(_) => align_shared(d, key, owner, look),
        Kind::Free | Kind::Plain | Kind::Foreign(_) => false,
    }
}

fn align_shared(d: &mut Decision<'_>, key: &Key, owner: &[u8], look: &Look) -> bool {
    if d.core.fields_known(key) != look.fields || d.core.differs(key, owner, look) {
        return learn(d, key, look);
    }
    let reads = look.holds > 0 && !d.core.is_left_over(key, owner, look.lease);
    let lease = d.core.lease_now(key, owner, look.lease, d.now);
    if reads && lease == Lease::Gone {
        readers::bury(d, key, &Owner::from(owner), Cause::Unknown);
        return true;
    }
    let shared = d.core.locks.shared(key);
    let as_known = shared.is_none_or(|shared| {
        let party = shared.party(owner).map(|party| (party.lease, party.holds));
        let same = !reads || party == Some((lease, look.holds));
        same && shared.expires == look.expires
    });
    if !as_known {
        d.core.locks.change_shared(key, |shared| {
            shared.expires = look.expires;
            shared.change(owner, |party| {
                if party.reads {
                    party.lease = lease;
                    party.holds = look.holds;
                }
            });
        });
    }
    false
}

/// Reads all holders of a read/write lock. Readers whose lease keys are gone
/// are removed, and so are what was known and is not there. Whether it wrote.
pub fn learn(d: &mut Decision<'_>, key: &Key, look: &Look) -> bool {
    let holders = d.ks.holders(key);
    if holders.len() != look.fields {
        // No lock, or no more: a field is no count of holds.
        if d.core.locks.get(key).is_some_and(Entry::is_held) {
            expiry::ended(d, key, Cause::Removed);
        }
        return false;
    }
    let entry = d.core.locks.get(key);
    let plain = entry.and_then(|entry| Some(entry.plain()?.owner.clone()));
    let mut plain_is_there = false;
    let mut found: BTreeMap<Owner, Party> = BTreeMap::new();
    let mut dead = Vec::new();
    for holder in holders {
        let owner = Owner::from(holder.owner);
        let left_over = plain.as_ref() == Some(&owner) && holder.lease.is_missing();
        if holder.mode == Mode::Read && left_over {
            plain_is_there = true;
            continue;
        }
        let party = found.entry(owner.clone()).or_insert_with(|| Party {
            hold: Hold::found(owner.clone()),
            first: None,
            reads: false,
            writes: false,
            lease: Lease::Gone,
            holds: 0,
        });
        match holder.mode {
            Mode::Write => party.writes = true,
            Mode::Exclusive | Mode::Read => {
                party.reads = true;
                party.lease = d.core.lease_now(key, &owner, holder.lease, d.now);
                party.holds = holder.holds;
                if party.lease == Lease::Gone {
                    dead.push(owner);
                }
            }
        }
    }
    // What looks like readers that died, in a hash that never ends, may be
    // somebody's data.
    let known = d.core.locks.get(key).is_some_and(Entry::is_held);
    let lives = found.values().any(|party| party.writes);
    if look.expires.is_none() && !known && dead.len() == found.len() && !lives {
        return false;
    }
    let old = d.core.locks.replace_shared(key, None).unwrap_or_default();
    let mut vanished = Vec::new();
    for party in old.parties() {
        match found.get_mut(&party.hold.owner) {
            Some(now) => {
                now.hold = party.hold.clone();
                now.first = party.first;
                if now.reads && now.lease == Lease::Gone {
                    now.lease = party.lease;
                }
            }
            None => vanished.push(party.clone()),
        }
    }
    let mut shared = Shared::default();
    shared.expires = look.expires;
    let mut fewer = Vec::new();
    for (owner, party) in found {
        let was = old.party(&owner);
        if was.is_some_and(|was| was.reads && !party.reads) {
            fewer.push((owner.clone(), Mode::Read));
        }
        if was.is_some_and(|was| was.writes && !party.writes) {
            fewer.push((owner.clone(), Mode::Write));
        }
        shared.put(party);
    }
    if shared.is_half() {
        d.core.look_again(key);
    }
    d.core.locks.change_shared(key, |known| *known = shared);
    for (owner, mode) in fewer {
        watchdog::on_lost_in(d, key, &owner, mode);
    }
    for party in vanished {
        expiry::party_ended(d, key, &party, Cause::Unknown);
    }
    if plain.is_some() && !plain_is_there {
        let hold = d.core.locks.take_plain(key);
        if let Some(hold) = hold {
            watchdog::on_lost(d, key, &hold);
        }
    }
    let wrote = !dead.is_empty();
    for owner in dead {
        readers::bury(d, key, &owner, Cause::Unknown);
    }
    d.core.locks.tidy(key);
    d.look_later(key);
    wrote
}
