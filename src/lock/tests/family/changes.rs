//! What others change, in the core's keyspace and in the model.

use super::model::{Hold, Kind, Mode, Owner, Place, NEVER};
use super::ops::{Op, Other};
use super::shell::at;
use super::world::World;
use crate::lock;
use crate::lock::ask::Once;
use crate::lock::table::Entry;

impl World {
    pub fn change(&mut self, what: Other) {
        let until =
            |ms: Option<i64>, world: &Self| ms.map_or(NEVER, |ms| world.model.now_ms() + ms);
        match what {
            Other::Del(place) if self.is_there(place) => {
                self.shell.del(place, false);
                self.model.remove(place, false);
            }
            Other::Evict(place) if self.is_there(place) => {
                self.shell.del(place, true);
                self.model.remove(place, true);
            }
            Other::Expire(place, ms) if self.is_there(place) && self.may_end(place, ms) => {
                let ends = until(ms, self);
                if self.model.keys[&place].ends != ends {
                    self.shell.pexpire(place, ends);
                    self.model.pexpire(place, ends);
                }
            }
            Other::Set(place, ms) => {
                let ends = until(ms, self);
                self.shell.set(place, ends);
                self.model.set(place, ends);
            }
            Other::Rename(from, to) if self.can_rename(from, to) => {
                self.shell.rename(from, to);
                self.model.rename(from, to);
            }
            Other::Take(place, owner, mode, ms) if self.can_take(place, owner, mode) => {
                let ends = self.model.now_ms() + ms;
                self.shell.script_takes(place, owner, mode, ends);
                self.model.script_takes(place, owner, mode, ends);
            }
            Other::Data(place, owner, holds) if self.can_put(place, owner) => {
                self.shell.data(place, owner, holds);
                self.model.data(place, owner, holds);
            }
            Other::Flush(db) => {
                self.shell.flush(db);
                self.model.flush(db);
            }
            Other::Swap if self.can_swap() => {
                self.shell.swap();
                self.model.swap();
            }
            what => self.change_hold(what, until),
        }
    }

    /// Of one hold, or of the lease keys of a reader.
    fn change_hold(&mut self, what: Other, until: impl Fn(Option<i64>, &Self) -> i64) {
        match what {
            Other::GiveBack(which) => {
                let known = |h: &Hold| self.model.tokens.contains_key(&(h.place, h.owner));
                let alone = |h: &Hold| {
                    let mut all = self.model.holds_at(h.place);
                    all.all(|other| other.owner != h.owner || other.id == h.id)
                };
                let bound = |h: &Hold| h.watch.is_some() || h.notify.is_some();
                let unknown = |h: &&Hold| !bound(h) && !known(h) && alone(h);
                if let Some(hold) = self.pick(which, unknown) {
                    self.shell.script_leaves(hold.place, hold.owner, hold.mode);
                    self.model.script_leaves(hold.place, hold.owner);
                }
            }
            Other::DelLease(which, evicted) => {
                let reader = self.pick(which, |hold| hold.mode == Mode::Read);
                if let Some(hold) = reader {
                    self.shell.del_lease(hold.place, hold.owner, evicted);
                    self.model.remove_lease(hold.place, hold.owner, evicted);
                }
            }
            Other::ExpireLease(which, ms) => {
                let ends = until(ms, self);
                let reader = self.pick(which, |hold| hold.mode == Mode::Read);
                if let Some(hold) = reader.filter(|hold| self.may_end(hold.place, ms)) {
                    self.shell.pexpire_leases(hold.place, hold.owner, ends);
                    self.model.pexpire_lease(hold.place, hold.owner, ends);
                }
            }
            Other::Squat(place, owner) => {
                let index = self.model.count(place, owner, Mode::Read) + 1;
                if !self.shell.has_lease_key(place, owner, index) {
                    self.shell.squat(place, owner, index);
                    self.model.squats.insert((place, owner, index));
                }
            }
            _ => {}
        }
    }

    fn pick(&self, which: usize, from: impl Fn(&&Hold) -> bool) -> Option<Hold> {
        let holds: Vec<&Hold> = self.model.holds.iter().filter(from).collect();
        holds.get(which % holds.len().max(1)).map(|hold| **hold)
    }

    /// Left out: a watched lease that ends before its next renewal, and one that the
    /// hash has not and the lease keys have.
    fn may_end(&self, place: Place, ms: Option<i64>) -> bool {
        let plain = self.model.kind(place) != Some(Kind::Shared);
        let mut holds = self.model.holds_at(place);
        let pool = self.model.kind(place) == Some(Kind::Permits);
        // Left out: what becomes of permits without a TTL after a demotion.
        if pool && ms.is_none() {
            return false;
        }
        (ms.is_none() && plain) || holds.all(|hold| hold.watch.is_none())
    }

    fn is_there(&self, place: Place) -> bool {
        self.model.keys.contains_key(&place)
    }

    /// Also what the model knows nothing of: the fields of readers that died.
    fn lies_at(&self, place: Place) -> bool {
        self.shell.ks.keys.contains_key(&at(place))
    }

    /// Left out: what rlock cannot tell from the lock that it held before, where it did not
    /// hear of the end of that.
    fn can_put(&self, place: Place, owner: Owner) -> bool {
        let hears = self.shell.core.rules.observes_all || !self.unread;
        !self.lies_at(place) && (hears || !self.held_before(place, owner))
    }

    /// MOVE keeps the name and wants it free there. Left out: a name under which
    /// the leases of other readers may be found, and what rlock cannot know from the
    /// lock that was there.
    fn can_rename(&self, from: Place, to: Place) -> bool {
        let moves = from.0 != to.0;
        let free = !self.lies_at(to);
        let both = |owner: &Owner| self.model.owners_at(to).contains(owner);
        from != to
            && self.is_there(from)
            && (!moves || (from.1 == to.1 && free))
            && !self.model.leases.keys().any(|(place, ..)| *place == to)
            && !self.model.owners_at(from).iter().any(both)
    }

    /// Left out: a request to write becomes an upgrade by it, where others wait who
    /// could read. Who goes first is left open.
    fn can_swap(&self) -> bool {
        let other = |place: Place| (1 - place.0, place.1);
        let mut readers = self.model.holds.iter().filter(|h| h.mode == Mode::Read);
        !readers.any(|hold| self.waits_to_write(other(hold.place), hold.owner))
    }

    fn waits_to_write(&self, place: Place, owner: Owner) -> bool {
        let mut queue = self.model.queue.iter();
        queue.any(|w| (w.ask.keys[0], w.ask.owner, w.ask.mode) == (place, owner, Mode::Write))
    }

    /// It finds the lock free, or joins other readers. Left out: a lock whose
    /// fields are there still, though its readers are gone; what rlock cannot know
    /// from a lock that it held before; and as for [`World::can_swap`].
    fn can_take(&self, place: Place, owner: Owner, mode: Mode) -> bool {
        if self.unread && self.held_before(place, owner) {
            return false;
        }
        if mode == Mode::Read && self.waits_to_write(place, owner) {
            return false;
        }
        if self.is_late() && (self.waited_with_once(place, owner) || self.is_unseen(place)) {
            return false;
        }
        let there = self.shell.fields(place);
        let unheard = there.is_none_or(|fields| !fields.contains_key(owner.as_bytes()));
        match self.model.kind(place) {
            None => there.is_none(),
            Some(Kind::Shared) => {
                let mut holds = self.model.holds_at(place);
                mode == Mode::Read && unheard && holds.all(|hold| hold.mode == Mode::Read)
            }
            Some(Kind::Permits) => {
                let limit = self.model.limits[&place];
                let fits = self.model.out(place) < limit.now;
                mode == Mode::Permits && unheard && fits && !self.waits_with_permits(place, owner)
            }
            Some(Kind::Plain | Kind::Text) => false,
        }
    }

    /// A request that the timer has yet to grant: it may have its lock before a script takes
    /// it, or have the hold of that script.
    fn waited_with_once(&self, place: Place, owner: Owner) -> bool {
        let key = at(place);
        let mut waiting = self.shell.core.queues.waiting(&key);
        waiting.any(|w| *w.want.owner == *owner.as_bytes() && w.want.once == Once::IsTheSame)
    }

    /// A lock that rlock knows yet, and hears nothing of: where another one is found in its
    /// place, it cannot tell whether that one's lease has run out before.
    fn is_unseen(&self, place: Place) -> bool {
        let known = self.shell.core.locks.get(&at(place));
        !self.shell.core.rules.observes_all && known.is_some_and(Entry::is_held)
    }

    /// Left out: whether such a one keeps others back is judged when rlock hears of it.
    fn waits_with_permits(&self, place: Place, owner: Owner) -> bool {
        let mut queue = self.model.queue.iter();
        queue.any(|w| w.ask.owner == owner && w.ask.keys.contains(&place))
    }

    fn held_before(&self, place: Place, owner: Owner) -> bool {
        let (core, now, key) = (&self.shell.core, self.shell.now, at(place));
        let modes = [
            lock::Mode::Exclusive,
            lock::Mode::Read,
            lock::Mode::Write,
            lock::Mode::Permits,
        ];
        let known = |mode| core.hold_of(now, &key, owner.as_bytes(), mode);
        modes.into_iter().any(|mode| known(mode).token.is_some())
    }

    /// Whether nobody is granted anything, refused, or told of anything by what others did.
    pub fn is_settled(&mut self) -> bool {
        let mut model = self.model.clone();
        model.settle();
        let settled = model.queue == self.model.queue && model.holds == self.model.holds;
        let is_told = !model.losses.is_empty() || !model.lost.is_empty();
        if settled && !is_told {
            self.model = model;
        }
        settled && !is_told
    }
}

/// What others do may be heard of together with what they do next.
pub fn may_be_unread(op: &Op) -> bool {
    matches!(
        op,
        Op::Other {
            what: Other::Del(_) | Other::Take(..) | Other::Data(..),
            ..
        }
    )
}
