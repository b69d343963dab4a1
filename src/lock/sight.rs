//! Looking at a key: what was known of it is brought in line with what it is.

use std::collections::BTreeMap;

use super::entry::{Entry, Hold, Party, Shared};
use super::turns::Next;
use super::{Bytes, Cause, Core, Effect, Foreign, Key, Keyspace, Kind, Lease, Look, Mode, Step};

/// A look that has changed something is followed by another; no key needs more
/// than a few, whatever somebody has made of it.
const MOST_LOOKS: u32 = 16;

impl Core {
    /// The key as `owner` sees it, after what is due on it has happened: an ended
    /// hold is told of, and a free lock goes to the head of its queue.
    pub(super) fn look<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &[u8],
    ) -> Look {
        let mut look = self.see(step, key, owner);
        if matches!(look.kind, Kind::ReadWrite(_)) && self.end_readers(step, key) {
            look = self.see(step, key, owner);
        }
        if !self.is_waited_for(key) {
            return look;
        }
        let one = match self.next(key) {
            // Who waits for several keys has had its look at the others.
            Some(Next::Waiter(id)) => self.waiters.get(&id).is_some_and(|w| !w.is_many()),
            Some(Next::Subscribers) => true,
            None => false,
        };
        let is_free = look.kind == Kind::Free && one;
        if !is_free && !self.pending.contains(key) {
            return look;
        }
        self.pending.insert(key.clone());
        self.settle_pending(step);
        self.see(step, key, owner)
    }

    /// As `look`, but without a look at the queue.
    pub(super) fn see<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &[u8],
    ) -> Look {
        self.attend(step, key);
        let mut tries = MOST_LOOKS;
        loop {
            let look = step.ks.look(key, owner);
            if look.kind != Kind::Free {
                self.turn_was_used(key);
            }
            tries = tries.saturating_sub(1);
            if self.align(step, key, owner, &look) && tries > 0 {
                continue;
            }
            return match look.kind {
                // A hash with a field `mode` that is somebody's data.
                Kind::ReadWrite(_) if look.fields == 0 || self.fields_known(key) != look.fields => {
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
    fn align<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &[u8],
        look: &Look,
    ) -> bool {
        if matches!(look.kind, Kind::ReadWrite(_)) && look.fields == 0 {
            // All holders are gone. If none is known it is somebody's data.
            let known = self.entry(key).is_some_and(Entry::is_held);
            if known {
                step.write(Effect::Delete { key: key.clone() });
                self.ended(step, key, Cause::Unknown);
            }
            return known;
        }
        let Some(entry) = self.entry(key) else {
            return match look.kind {
                Kind::ReadWrite(_) => self.learn(step, key, look),
                _ => false,
            };
        };
        let known = entry.is_held() || entry.deadline.is_some();
        match look.kind {
            Kind::Free if known => self.ended(step, key, Cause::seen_by(look)),
            // SET over a lock is no event that rlock hears everywhere.
            Kind::Foreign(_) if known && !entry.foreign => self.ended(step, key, Cause::Removed),
            Kind::Plain if entry.shared.is_some() => self.ended(step, key, Cause::Removed),
            Kind::ReadWrite(_) => self.align_shared(step, key, owner, look),
            Kind::Free | Kind::Plain | Kind::Foreign(_) => false,
        }
    }

    fn align_shared<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &[u8],
        look: &Look,
    ) -> bool {
        if self.fields_known(key) != look.fields || self.differs(key, owner, look) {
            return self.learn(step, key, look);
        }
        let reads = look.holds > 0 && !self.is_left_over(key, owner, look.lease);
        let lease = self.lease_now(key, owner, look.lease, step.now);
        if reads && lease == Lease::Gone {
            self.bury(step, key, &Bytes::from(owner), Cause::Unknown);
            return true;
        }
        let shared = self.entry(key).and_then(|entry| entry.shared.as_ref());
        let as_known = shared.is_none_or(|shared| {
            let party = shared.party(owner).map(|party| (party.lease, party.holds));
            let same = !reads || party == Some((lease, look.holds));
            same && shared.expires == look.expires
        });
        if !as_known {
            self.know_shared(key, |shared| {
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

    /// The owner is known otherwise than it stands in the hash.
    fn differs(&self, key: &Key, owner: &[u8], look: &Look) -> bool {
        let Some(entry) = self.entry(key) else {
            return look.holds > 0 || look.writes > 0;
        };
        let party = entry.shared.as_ref().and_then(|shared| shared.party(owner));
        let reads = party.is_some_and(|party| party.reads) || entry.plain_of(owner).is_some();
        let writes = party.is_some_and(|party| party.writes);
        (reads, writes) != (look.holds > 0, look.writes > 0)
    }

    pub(super) fn fields_known(&self, key: &Key) -> usize {
        self.entry(key).map_or(0, |entry| {
            let shared = entry.shared.as_ref().map_or(0, |shared| shared.fields());
            shared.saturating_add(usize::from(entry.plain.is_some()))
        })
    }

    /// Whether the owner's field is that of a plain lock which somebody has made a
    /// read/write lock of: an exclusive hold until the hash ends.
    pub(super) fn is_left_over(&self, key: &Key, owner: &[u8], lease: Lease) -> bool {
        let plain = self.entry(key).and_then(|entry| entry.plain_of(owner));
        plain.is_some() && lease.is_missing()
    }

    /// Reads all holders of a read/write lock. Readers whose lease keys are gone
    /// are removed, and so are what was known and is not there. Whether it wrote.
    pub(super) fn learn<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        look: &Look,
    ) -> bool {
        let holders = step.ks.holders(key);
        if holders.len() != look.fields {
            // No lock, or no more: a field is no count of holds.
            if self.entry(key).is_some_and(Entry::is_held) {
                self.ended(step, key, Cause::Removed);
            }
            return false;
        }
        let entry = self.entry(key);
        let plain = entry.and_then(|entry| Some(entry.plain.as_ref()?.owner.clone()));
        let mut plain_is_there = false;
        let mut found: BTreeMap<Bytes, Party> = BTreeMap::new();
        let mut dead = Vec::new();
        for holder in holders {
            let owner = Bytes::from(holder.owner);
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
                    party.lease = self.lease_now(key, &owner, holder.lease, step.now);
                    party.holds = holder.holds;
                    if party.lease == Lease::Gone {
                        dead.push(owner);
                    }
                }
            }
        }
        // What looks like readers that died, in a hash that never ends, may be
        // somebody's data.
        let known = self.entry(key).is_some_and(Entry::is_held);
        let lives = found.values().any(|party| party.writes);
        if look.expires.is_none() && !known && dead.len() == found.len() && !lives {
            return false;
        }
        let old = self.put_shared(key, None).unwrap_or_default();
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
            self.look_again(key);
        }
        self.know_shared(key, |known| *known = shared);
        for (owner, mode) in fewer {
            self.lost_in(step, (key, &owner), mode);
        }
        for party in vanished {
            self.party_ended(step, key, &party, Cause::Unknown);
        }
        if plain.is_some() && !plain_is_there {
            let hold = self.entry_mut(key).and_then(|entry| entry.plain.take());
            if let Some(hold) = hold {
                self.lost(step, key, &hold);
            }
        }
        let wrote = !dead.is_empty();
        for owner in dead {
            self.bury(step, key, &owner, Cause::Unknown);
        }
        self.tidy(key);
        self.look_later(key);
        wrote
    }
}
