//! What others do to the keys, with commands and scripts that know nothing of
//! rlock. Each is to be called only where it has an effect; what is due then
//! happens when rlock hears of it, with [`Model::settle`].

use super::{Event, Hold, Kind, Limit, Mode, Model, Owner, Place, Reason, Slot, NEVER};

/// The limit by which others take permits of a free lock.
pub const FOUND_LIMIT: usize = 2;

impl Model {
    /// DEL, or eviction.
    pub fn remove(&mut self, place: Place, evicted: bool) {
        // Once, or once for each who held it.
        let mut sure = evicted;
        for owner in self.owners_at(place).into_iter().filter(|_| evicted) {
            let known = self.tokens.contains_key(&(place, owner));
            self.tell(place, Event::Evicted, known && sure);
            sure &= !known;
        }
        let reason = if evicted {
            Reason::Evicted
        } else {
            Reason::Deleted
        };
        self.vanish(place, reason);
    }

    fn vanish(&mut self, place: Place, reason: Reason) {
        self.lose(reason, |hold| hold.place == place);
        self.keys.remove(&place);
        self.limits.remove(&place);
        self.aside.remove(&place);
    }

    /// PEXPIRE or PERSIST. A hash that could be a lock is one while it has a TTL, or if
    /// rlock knows it.
    pub fn pexpire(&mut self, place: Place, ends: i64) {
        let Some(slot) = self.keys.get_mut(&place) else {
            return;
        };
        slot.ends = ends;
        slot.by_hand = true;
        if ends == NEVER && slot.kind != Kind::Text && !slot.known {
            let kind = std::mem::replace(&mut slot.kind, Kind::Text);
            let holds = self.holds.extract_if(.., |hold| hold.place == place);
            let holds: Vec<Hold> = holds.collect();
            holds.iter().for_each(|hold| self.parted(hold));
            self.aside.insert(place, (kind, holds));
        } else if let Some((kind, holds)) = self.aside.remove(&place) {
            slot.kind = kind;
            self.holds.extend(holds);
            self.tidy(place);
            self.judge_holders(place);
        }
    }

    /// Somebody's data, a hash without a TTL that would be this owner's plain lock.
    pub fn data(&mut self, place: Place, owner: Owner, holds: usize) {
        let holds = (0..holds).map(|_| self.found(place, owner, Mode::Plain));
        let holds = holds.collect();
        self.aside.insert(place, (Kind::Plain, holds));
        self.keys.insert(place, Slot::foreign(NEVER));
    }

    /// SET.
    pub fn set(&mut self, place: Place, ends: i64) {
        self.vanish(place, Reason::Overwritten);
        self.keys.insert(place, Slot::foreign(ends));
    }

    /// RENAME or MOVE. The hold goes with it; its watchdog does not, and neither
    /// do the leases of readers.
    pub fn rename(&mut self, from: Place, to: Place) {
        self.vanish(to, Reason::Overwritten);
        if let Some((kind, mut holds)) = self.aside.remove(&from) {
            holds.iter_mut().for_each(|hold| hold.place = to);
            self.aside.insert(to, (kind, holds));
        }
        let ends = self.keys[&from].ends;
        self.unbind(Reason::Moved, |hold| hold.place == from);
        self.lose(Reason::Moved, |hold| {
            hold.place == from && hold.mode == Mode::Read
        });
        let Some(slot) = self.keys.remove(&from) else {
            // The fields of its readers are left, and without a TTL they are data.
            if ends == NEVER {
                self.aside.insert(to, (Kind::Shared, Vec::new()));
                self.keys.insert(to, Slot::foreign(NEVER));
            }
            return;
        };
        self.keys.insert(to, slot);
        if let Some(limit) = self.limits.remove(&from) {
            self.limits.insert(to, limit);
        }
        if let Some(left) = self.left.remove(&from) {
            *self.left.entry(to).or_default() += left;
        }
        for hold in self.holds.clone().iter().filter(|hold| hold.place == from) {
            self.parted(hold);
        }
        for hold in self.holds.iter_mut().filter(|hold| hold.place == from) {
            hold.place = to;
            if let Some(token) = self.tokens.remove(&(from, hold.owner)) {
                self.tokens.insert((to, hold.owner), token);
            }
            if let Some(ends) = self.permit_ends.remove(&(from, hold.owner)) {
                self.permit_ends.insert((to, hold.owner), ends);
            }
            if let Some(given) = self.given.remove(&(from, hold.owner, hold.mode)) {
                self.given.insert((to, hold.owner, hold.mode), given);
            }
        }
        self.judge_holders(to);
    }

    /// Whoever holds a key that somebody waits for has come to it by no request.
    fn judge_holders(&mut self, place: Place) {
        if self.queue.iter().any(|w| w.ask.keys.contains(&place)) {
            self.judged.extend(self.owners_at(place));
        }
    }

    /// A script of Redisson's takes the lock. The first to come, or another reader.
    pub fn script_takes(&mut self, place: Place, owner: Owner, mode: Mode, ends: i64) {
        let kind = match mode {
            Mode::Plain => Kind::Plain,
            Mode::Read | Mode::Write => Kind::Shared,
            Mode::Permits => Kind::Permits,
        };
        self.keys.entry(place).or_insert(Slot {
            kind,
            ends,
            by_hand: false,
            known: false,
        });
        if mode == Mode::Permits {
            let asked = FOUND_LIMIT;
            self.limits
                .entry(place)
                .or_insert(Limit { asked, now: asked });
        }
        if mode == Mode::Read {
            self.squats.remove(&(place, owner, 1));
        }
        let hold = self.found(place, owner, mode);
        self.holds.push(hold);
        self.set_lease(place, owner, ends);
        self.judge_holders(place);
    }

    /// A script of Redisson's gives back what a script took.
    pub fn script_leaves(&mut self, place: Place, owner: Owner) {
        *self.left.entry(place).or_default() += 1;
        let theirs = self.holds_at(place).filter(|hold| hold.owner == owner);
        let ids: Vec<u64> = theirs.map(|hold| hold.id).collect();
        self.end(&ids);
    }

    /// The last lease key of a reader is deleted, or evicted.
    pub fn remove_lease(&mut self, place: Place, owner: Owner, evicted: bool) {
        let reads = self.count(place, owner, Mode::Read);
        self.leases.remove(&(place, owner, reads));
        self.keys.get_mut(&place).unwrap().by_hand = true;
        let before = self.events.len();
        let reason = if evicted {
            Reason::Evicted
        } else {
            Reason::Deleted
        };
        self.bury_readers(Event::Evicted, reason);
        if !evicted {
            self.events.truncate(before);
        }
    }

    /// A reader's lease keys get another TTL.
    pub fn pexpire_lease(&mut self, place: Place, owner: Owner, ends: i64) {
        for index in 1..=self.count(place, owner, Mode::Read) {
            let lease = self.leases.get_mut(&(place, owner, index));
            lease.into_iter().for_each(|lease| *lease = ends);
        }
        self.keys.get_mut(&place).unwrap().by_hand = true;
    }

    pub fn flush(&mut self, db: Option<i32>) {
        let flushed = |place: &Place| db.is_none_or(|db| db == place.0);
        self.lose(Reason::Flushed, |hold| flushed(&hold.place));
        self.keys.retain(|place, _| !flushed(place));
        self.limits.retain(|place, _| !flushed(place));
        self.aside.retain(|place, _| !flushed(place));
        self.leases.retain(|(place, ..), _| !flushed(place));
        self.squats.retain(|(place, ..)| !flushed(place));
    }

    /// SWAPDB 0 1: as if all keys were moved, but that leases go along.
    pub fn swap(&mut self) {
        let other = |place: Place| (1 - place.0, place.1);
        let keys = std::mem::take(&mut self.keys).into_iter();
        self.keys = keys.map(|(place, slot)| (other(place), slot)).collect();
        let leases = std::mem::take(&mut self.leases).into_iter();
        self.leases = leases
            .map(|((p, o, i), ends)| ((other(p), o, i), ends))
            .collect();
        let squats = std::mem::take(&mut self.squats).into_iter();
        self.squats = squats.map(|(p, o, i)| (other(p), o, i)).collect();
        let limits = std::mem::take(&mut self.limits).into_iter();
        self.limits = limits.map(|(place, limit)| (other(place), limit)).collect();
        let left = std::mem::take(&mut self.left).into_iter();
        self.left = left.map(|(place, times)| (other(place), times)).collect();
        let ends = std::mem::take(&mut self.permit_ends).into_iter();
        self.permit_ends = ends.map(|((p, o), at)| ((other(p), o), at)).collect();
        let tokens = std::mem::take(&mut self.tokens).into_iter();
        self.tokens = tokens
            .map(|((p, o), token)| ((other(p), o), token))
            .collect();
        let given = std::mem::take(&mut self.given).into_iter();
        self.given = given
            .map(|((p, o, mode), tokens)| ((other(p), o, mode), tokens))
            .collect();
        let aside = std::mem::take(&mut self.aside).into_iter();
        self.aside = aside.map(|(place, what)| (other(place), what)).collect();
        for hold in self.aside.values_mut().flat_map(|(_, holds)| holds) {
            hold.place = other(hold.place);
        }
        self.unbind(Reason::Moved, |_| true);
        for hold in self.holds.clone() {
            self.parted(&hold);
        }
        for hold in &mut self.holds {
            hold.place = other(hold.place);
        }
        for place in self.keys.keys().copied().collect::<Vec<_>>() {
            self.judge_holders(place);
        }
    }
}
