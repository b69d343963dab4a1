//! Who holds a lock and wants to know (WANTED) is told that somebody waits whom it keeps out: once
//! for each who comes to be first in the queue, and again every third of its lease.

use std::collections::BTreeSet;

use super::{Hold, Model, Owner, Place, Waiter};

/// Of an owner's holds on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hint {
    /// ms.
    every: i64,
    /// For whom it was told last.
    pub told: Option<usize>,
    /// When it is told again, if it is so still: monotonic us.
    next: i64,
}

impl Model {
    /// The owner has these holds by a request with so long a lease, and wants to know, or not.
    pub fn begin_hints(&mut self, of: (Place, Owner), lease: i64, wanted: bool) {
        self.forget_hints();
        if !wanted {
            return;
        }
        let was = self.hinted.get(&of).map_or(0, |hint| hint.every);
        let every = was.max(third(lease));
        let hint = Hint {
            every,
            told: None,
            next: self.mono_us + every * 1000,
        };
        self.hinted.insert(of, hint);
    }

    /// A renewal has set the lease.
    pub fn has_other_lease(&mut self, of: (Place, Owner), lease: i64) {
        self.forget_hints();
        if let Some(hint) = self.hinted.get_mut(&of) {
            hint.every = third(lease);
            hint.next = hint.next.min(self.mono_us + hint.every * 1000);
        }
    }

    /// Of holds that have ended, or are told of elsewhere by now, nobody wants to know.
    pub fn forget_hints(&mut self) {
        let holds = &self.holds;
        self.hinted.retain(|of, _| {
            let is_its = |hold: &Hold| (hold.place, hold.owner) == *of;
            holds.iter().any(|hold| is_its(hold) && is_hinted(hold))
        });
    }

    /// All queues are as they will be: who is to know and does not is told.
    pub fn hint(&mut self) {
        self.forget_hints();
        for (place, owner) in self.hinted.keys().copied().collect::<Vec<_>>() {
            let first = self.kept_out_by(place, owner);
            let wanted_by = first.filter(|first| self.has_rest(first, place, owner));
            let wanted_by = wanted_by.map(|waiter| waiter.id);
            let theirs = self.holds_at(place).filter(|hold| hold.owner == owner);
            let addresses = theirs
                .filter(|hold| is_hinted(hold))
                .filter_map(|h| h.notify);
            let addresses: BTreeSet<_> = addresses.collect();
            let now = self.mono_us;
            let hint = self.hinted.get_mut(&(place, owner)).unwrap();
            let tells = wanted_by.is_some() && hint.told != wanted_by;
            hint.told = wanted_by;
            if tells {
                hint.next = now + hint.every * 1000;
                self.hints.extend(addresses);
            }
        }
    }

    /// It is time to tell again.
    pub fn is_to_hint(&self) -> bool {
        self.hinted.values().any(|hint| hint.next <= self.mono_us)
    }

    /// As long as somebody waits it is told again.
    pub fn hint_again(&mut self) {
        let now = self.mono_us;
        for hint in self.hinted.values_mut().filter(|hint| hint.next <= now) {
            (hint.told, hint.next) = (None, now + hint.every * 1000);
        }
        self.hint();
    }

    /// Of a request for several keys: it can have the others, but for those that the same owner
    /// holds.
    fn has_rest(&self, waiter: &Waiter, place: Place, owner: Owner) -> bool {
        let mut others = waiter.ask.keys.iter().filter(|other| **other != place);
        others.all(|other| {
            let is_next = self.ahead(waiter, *other).next().is_none();
            let mut holds = self.holds_at(*other);
            self.holds_any(*other, waiter.ask.owner) || is_next && holds.all(|h| h.owner == owner)
        })
    }
}

fn is_hinted(hold: &Hold) -> bool {
    hold.wanted && hold.notify.is_some()
}

fn third(lease: i64) -> i64 {
    (lease / 3).max(1)
}
