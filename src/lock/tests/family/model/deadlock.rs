//! Who waits for whom, and cycles of that. The unit is the owner, over all its
//! connections.

use std::collections::BTreeSet;

use super::waiting::Status;
use super::{Ask, Hold, Mode, Model, Owner, Waiter, Why};

fn conflict(one: Mode, other: Mode) -> bool {
    // Of permits any that come back will do: see `permits`.
    one != other || matches!(one, Mode::Plain | Mode::Write)
}

impl Model {
    /// The owners that a waiting request waits for: those whose holds conflict
    /// with it, and those whose conflicting requests stand ahead of it.
    pub fn waits_for(&self, waiter: &Waiter) -> BTreeSet<Owner> {
        let ask = &waiter.ask;
        let mut found = BTreeSet::new();
        for place in &ask.keys {
            if self.status_on(waiter, *place) == Status::Granted {
                // It has this key, or could.
                continue;
            }
            let stops = |hold: &&Hold| conflict(hold.mode, ask.mode);
            found.extend(self.holds_at(*place).filter(stops).map(|hold| hold.owner));
            let stops = |other: &&Waiter| conflict(other.ask.mode, ask.mode);
            let goes_on = |other: &&Waiter| self.between || other.ask.owner != ask.owner;
            let ahead = self.ahead(waiter, *place).take_while(goes_on);
            found.extend(ahead.filter(stops).map(|w| w.ask.owner));
        }
        found.remove(ask.owner);
        found
    }

    fn owner_waits_for(&self, owner: Owner) -> BTreeSet<Owner> {
        let theirs = self.queue.iter().filter(|w| w.ask.owner == owner);
        theirs.flat_map(|waiter| self.waits_for(waiter)).collect()
    }

    /// All that the owner waits for, directly or not.
    fn reach(&self, owner: Owner) -> BTreeSet<Owner> {
        let mut reached = BTreeSet::new();
        let mut next = vec![owner];
        while let Some(owner) = next.pop() {
            for other in self.owner_waits_for(owner) {
                if reached.insert(other) {
                    next.push(other);
                }
            }
        }
        reached
    }

    pub fn in_cycle(&self, owner: Owner) -> bool {
        self.reach(owner).contains(owner)
    }

    /// Whether the request itself is part of a cycle.
    pub fn closes_cycle(&self, id: usize) -> bool {
        let waiter = self.waiter(id);
        let owner = waiter.ask.owner;
        let mut others = self.waits_for(waiter).into_iter();
        others.any(|other| self.reach(other).contains(owner))
    }

    /// A new request cannot be granted as it stands, at the end.
    pub fn would_wait(&mut self, id: usize) -> Status {
        if self.waiter(id).upgrades && self.is_second_upgrade(id) {
            return Status::Refused(vec![Why::Deadlock]);
        }
        if !self.detect_deadlocks || !(self.closes_cycle(id) || self.is_hoarder(id)) {
            return Status::Stays;
        }
        self.way_out(id)
    }

    /// At a grant to an owner that still waits elsewhere.
    pub fn break_one(&mut self) -> bool {
        if !self.detect_deadlocks {
            return false;
        }
        let judged = |w: &&Waiter| self.judged.contains(w.ask.owner) && self.closes_cycle(w.id);
        let theirs = self.queue.iter().filter(judged);
        let ids: BTreeSet<usize> = theirs.map(|waiter| waiter.id).collect();
        for id in &ids {
            let mut other = self.clone();
            if !matches!(other.way_out(*id), Status::Refused(_)) {
                *self = other;
                return true;
            }
        }
        // The oldest of them.
        let refused = ids.first();
        refused.inspect(|id| self.refuse(**id, Why::Deadlock));
        refused.is_some()
    }

    /// The request is put before the foremost waiter that waits, directly or not,
    /// for its owner. If a cycle is left, it is refused.
    fn way_out(&mut self, id: usize) -> Status {
        let at = self.queue.iter().position(|w| w.id == id).unwrap();
        let Ask { keys, owner, .. } = &self.queue[at].ask;
        let shares = |other: &Waiter| other.ask.keys.iter().any(|place| keys.contains(place));
        let mut ahead = self.queue[..at].iter();
        let foremost = ahead.position(|other| {
            let waits = || self.reach(other.ask.owner).contains(owner);
            shares(other) && other.ask.owner != *owner && waits()
        });
        let owner = *owner;
        if let Some(foremost) = foremost {
            let rank = self.queue[foremost].rank;
            let rank = rank.map(|rank| self.just_before(rank));
            let waiter = self.queue.remove(at);
            self.queue.insert(foremost, Waiter { rank, ..waiter });
        }
        match self.status(self.waiter(id)) {
            Status::Stays if self.in_cycle(owner) || self.is_hoarder(id) => {
                Status::Refused(vec![Why::Deadlock])
            }
            status => status,
        }
    }
}
