//! Who holds a read/write lock, and what happens when one of them is gone.

use super::entry::Entry;
use super::{
    Bytes, Cause, Core, Effect, Event, Key, Keyspace, Kind, Lease, Mode, Step, Whom, MOST_READS,
};

impl Core {
    /// Whether readers are kept out: by a writer, or by a plain hold that somebody
    /// made a read/write lock of.
    pub(super) fn keeps_readers_out<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
    ) -> bool {
        for _ in 0..2 {
            let Some(entry) = self.entry(key) else {
                return false;
            };
            let plain = entry.plain.as_ref().map(|hold| hold.owner.clone());
            let writer = entry.shared.as_ref().and_then(|s| s.writer().cloned());
            let gone = match (&plain, &writer) {
                (Some(owner), _) if step.ks.look(key, owner).holds > 0 => return true,
                (_, Some(owner)) if step.ks.look(key, owner).writes > 0 => return true,
                (Some(owner), _) | (None, Some(owner)) => owner,
                (None, None) => return false,
            };
            // Another writer may have its place in the hash.
            self.see(step, key, gone);
        }
        true
    }

    /// Whether anybody but this owner holds the read/write lock. Readers that are
    /// found dead on the way are removed.
    pub(super) fn others<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &[u8],
    ) -> bool {
        loop {
            let Some(entry) = self.entry(key) else {
                return false;
            };
            let plain = entry.plain.as_ref().map(|hold| hold.owner.clone());
            let party = entry.shared.as_ref().and_then(|s| s.other_than(owner));
            let Some(other) = plain.filter(|plain| **plain != *owner).or(party) else {
                return false;
            };
            let look = step.ks.look(key, &other);
            if self.modes(key, &other, &look).any().is_some() {
                return true;
            }
            match look.kind {
                // Somebody made something else of it.
                Kind::Foreign(_) => return true,
                Kind::ReadWrite(_) if look.holds > 0 && self.reads(key, &other) => {
                    self.bury(step, key, &other, Cause::Unknown);
                }
                Kind::Free | Kind::Plain | Kind::ReadWrite(_) => {
                    self.forget_party(step, key, &other);
                    // Another owner may have its place in the hash.
                    self.see(step, key, owner);
                }
            }
        }
    }

    /// Whether the owner is known to read under this lock.
    fn reads(&self, key: &Key, owner: &[u8]) -> bool {
        self.knows_reader(key.db, &key.name, owner)
    }

    /// A read/write lock has lost a holder; whether anybody is left in it. A hash
    /// that nobody holds is removed. `left`: so many fields of the holder are in the
    /// hash still, to go with it.
    pub(super) fn sweep<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        left: usize,
    ) -> bool {
        let look = step.ks.look(key, &[]);
        if matches!(look.kind, Kind::ReadWrite(_)) && look.fields > left {
            // Whoever joined by a script of its own may not be known yet.
            if self.fields_known(key) != look.fields {
                self.learn(step, key, &look);
            }
            let is_lock = self.fields_known(key) == step.ks.look(key, &[]).fields;
            if !is_lock || self.others(step, key, &[]) {
                return true;
            }
        }
        if matches!(step.ks.look(key, &[]).kind, Kind::ReadWrite(_)) {
            step.write(Effect::Delete { key: key.clone() });
        }
        self.forsake(step, key);
        false
    }

    /// Shortens the hash to the reader that stays longest, after one has left.
    pub(super) fn shorten<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key) {
        let Some(end) = step.ks.look(key, &[]).expires else {
            return;
        };
        // A plain hold that somebody put readers beside lasts as long as the hash.
        if self.entry(key).is_some_and(|entry| entry.plain.is_some()) {
            return;
        }
        let mut to = end;
        self.know_shared(key, |shared| {
            if shared.writer().is_none() {
                to = shared.last_end().map_or(end, |last| last.min(end));
                shared.expires = Some(to);
            }
        });
        step.expire_at(key, Some(end), Some(to));
    }

    /// The lease of a reader is over: its field goes, and with the last one the
    /// lock. A watchdog's that only stood still is written anew.
    pub(super) fn bury<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        cause: Cause,
    ) {
        let shared = self.entry(key).and_then(|entry| entry.shared.as_ref());
        let Some(party) = shared.and_then(|shared| shared.party(owner)).cloned() else {
            return;
        };
        let end = match party.lease {
            Lease::Until(at) => Some(at),
            Lease::Gone | Lease::Endless | Lease::Away => None,
        };
        let event = self.event_of(cause, end, step.now);
        if event == Some(Event::Expired) && self.revive(step, key, owner, end) {
            return;
        }
        // The last field goes with the hash.
        let is_last = step.ks.look(key, owner).fields == 1;
        if !is_last {
            step.write(Effect::Drop {
                key: key.clone(),
                owner: owner.clone(),
                mode: Mode::Read,
            });
        }
        if let Some(event) = event {
            self.tell(step, key, event);
        }
        if party.writes {
            self.lost_in(step, (key, owner), Mode::Read);
        }
        self.reads_no_more(step, key, owner);
        // With the last field all have left, whoever was known: nobody told.
        let is_held = !is_last && self.entry(key).is_some_and(Entry::is_held);
        if !is_held && !self.sweep(step, key, usize::from(is_last)) {
            // Whoever asks may not take it: those who wait are to know.
            self.left_free(step, key, Whom::OneShared);
        }
        self.look_later(key);
    }

    /// The owner has no read holds any more, by no doing of its own.
    pub(super) fn reads_no_more<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
    ) {
        let mut gone = None;
        self.know_shared(key, |shared| {
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
            Some(party) => self.lost(step, key, &party.hold),
            None => {
                self.dropped(key, owner, Mode::Read, None);
            }
        }
        self.tidy(key);
    }

    /// An owner that was known is not in the hash any more.
    fn forget_party<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, owner: &Bytes) {
        let mut gone = None;
        if let Some(entry) = self.entry_mut(key) {
            if entry.plain_of(owner).is_some() {
                gone = entry.plain.take();
            }
        }
        self.know_shared(key, |shared| {
            if let Some(party) = shared.remove(owner) {
                gone = Some(party.hold);
            }
        });
        if let Some(hold) = gone {
            self.lost(step, key, &hold);
        }
        self.tidy(key);
    }

    /// Writes the holds of one owner anew: so many reads, so many writes.
    pub(super) fn rewrite_party<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        (reads, writes): (i64, i64),
        at: i64,
    ) {
        let look = step.ks.look(key, owner);
        let mode = if writes > 0 { Mode::Write } else { Mode::Read };
        if look.kind == Kind::Free {
            let key = key.clone();
            step.write(Effect::SetMode { key, mode });
        }
        for (mode, has, holds) in [
            (Mode::Write, look.writes, writes),
            (Mode::Read, look.holds, reads),
        ] {
            if has == 0 && holds > 0 {
                step.write(Effect::Count {
                    key: key.clone(),
                    owner: owner.clone(),
                    mode,
                    holds,
                    by: holds,
                });
            }
        }
        for index in 1..=reads.min(MOST_READS) {
            step.write(Effect::Lease {
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
        step.expire_at(key, look.expires, expires);
        self.know_shared(key, |shared| {
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
}
