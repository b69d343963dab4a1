//! Leases that run out, and the server that renews some of them.

use std::collections::BTreeSet;

use super::{Event, Hold, Kind, Mode, Model, Owner, Place, Reason, Watch};

impl Model {
    /// The shortest lease that the server renews for the owner on the key, if it
    /// renews any.
    pub fn watched(&self, place: Place, owner: Owner) -> Option<Watch> {
        let theirs = self.holds_at(place).filter(|hold| hold.owner == owner);
        theirs.filter_map(|hold| hold.watch).min_by_key(|w| w.lease)
    }

    /// An owner has one lease on a key: the longest of its watchdogs' goes for all of
    /// them, and so does the last moment at which one of them began.
    pub fn share_watches(&mut self, place: Place, owner: Owner) {
        let theirs = || move |hold: &&mut Hold| (hold.place, hold.owner) == (place, owner);
        let watches = self.holds.iter_mut().filter(theirs());
        let watches: Vec<Watch> = watches.filter_map(|hold| hold.watch).collect();
        let longest = watches.iter().map(|watch| watch.longest).max();
        let since = watches.iter().map(|watch| watch.since).max();
        let asked = watches.iter().map(|watch| watch.asked).max();
        let watches = self.holds.iter_mut().filter(theirs());
        for watch in watches.filter_map(|hold| hold.watch.as_mut()) {
            watch.longest = longest.unwrap_or(watch.lease);
            watch.since = since.unwrap_or(watch.since);
            watch.asked = asked.unwrap_or(watch.asked);
        }
    }

    /// Since the last of its watchdogs began: until when the server may renew.
    fn may_renew(&self, place: Place, owner: Owner) -> bool {
        let theirs = self.holds_at(place).filter(|hold| hold.owner == owner);
        let since = theirs.filter_map(|hold| hold.watch).map(|w| w.since).max();
        let max = self.watchdog_max;
        since.is_some_and(|since| max == 0 || self.now_ms() <= since + max)
    }

    /// A watched lease that ran out all the same, in a stall, is written anew: here
    /// nobody has come between. Those that did not are renewed when the core does
    /// it: the runner looks that it does so in time.
    pub fn watch(&mut self) {
        let held: BTreeSet<(Place, Owner)> = self
            .holds
            .iter()
            .map(|hold| (hold.place, hold.owner))
            .collect();
        for (place, owner) in held {
            let now = self.now_ms();
            let mut ends = self.ends(place, owner).min(self.keys[&place].ends);
            if let Some(reads) = self.reads_end(place, owner) {
                ends = ends.min(reads);
            }
            if ends < now && self.may_renew(place, owner) {
                let lease = self.watched(place, owner).unwrap().lease;
                self.bury(place);
                self.set_lease(place, owner, now + lease);
            }
        }
    }

    /// Nothing may be written: whoever is bound to a lease that is over has lost it.
    pub fn lapse(&mut self) {
        let now = self.now_ms();
        for hold in self.holds.clone() {
            let (place, owner) = (hold.place, hold.owner);
            let ends = self.ends(place, owner).min(self.keys[&place].ends);
            if ends < now {
                let theirs = |hold: &Hold| (hold.place, hold.owner) == (place, owner);
                self.unbind(Reason::Expired, theirs);
            }
        }
    }

    /// The hash has run out, and one of its holders is to have it anew: the others
    /// are gone with it.
    fn bury(&mut self, place: Place) {
        if self.keys[&place].ends >= self.now_ms() {
            return;
        }
        for owner in self.owners_at(place) {
            if !self.may_renew(place, owner) {
                let theirs = |hold: &Hold| (hold.place, hold.owner) == (place, owner);
                self.lose(Reason::Expired, theirs);
                self.tell(place, Event::Expired, false);
            }
        }
    }

    pub fn expire(&mut self) {
        let now = self.now_ms();
        let over = self.keys.iter().filter(|(_, slot)| slot.ends < now);
        for place in over.map(|(place, _)| *place).collect::<Vec<_>>() {
            for owner in self.owners_at(place) {
                if self.kind(place) == Some(Kind::Permits) {
                    self.permits_ran_out(place, owner);
                    continue;
                }
                let sure = self.tokens.contains_key(&(place, owner));
                self.tell(place, Event::Expired, sure);
            }
            self.lose(Reason::Expired, |hold| hold.place == place);
            self.keys.remove(&place);
            self.limits.remove(&place);
        }
        self.leases.retain(|_, ends| *ends >= now);
        self.bury_readers(Event::Expired, Reason::Expired);
        let over = self.permit_ends.iter().filter(|(_, ends)| **ends < now);
        for (place, owner) in over.map(|(which, _)| *which).collect::<Vec<_>>() {
            self.permits_ran_out(place, owner);
            self.lose(Reason::Expired, |h| (h.place, h.owner) == (place, owner));
        }
    }

    /// Of what rlock does not know yet it tells when it finds it.
    fn permits_ran_out(&mut self, place: Place, owner: Owner) {
        if self.tokens.contains_key(&(place, owner)) {
            self.tell(place, Event::Expired, true);
        } else {
            *self.left.entry(place).or_default() += 1;
        }
    }

    /// A reader is one while any of its lease keys is there.
    pub fn bury_readers(&mut self, event: Event, reason: Reason) {
        for place in self.keys.keys().copied().collect::<Vec<_>>() {
            if self.kind(place) != Some(Kind::Shared) {
                continue;
            }
            for owner in self.owners_at(place) {
                let reads = self.count(place, owner, Mode::Read);
                let mut leases = (1..=reads).map(|i| self.leases.get(&(place, owner, i)));
                if reads == 0 || leases.any(|lease| lease.is_some()) {
                    continue;
                }
                // It may hold on as a writer.
                let writes = self.count(place, owner, Mode::Write) > 0;
                let sure = !writes && self.tokens.contains_key(&(place, owner));
                self.tell(place, event, sure);
                self.lose(reason, |h| {
                    (h.place, h.owner, h.mode) == (place, owner, Mode::Read)
                });
            }
        }
    }
}
