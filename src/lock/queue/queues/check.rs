//! Whether the indexes say the same.

use super::super::waiter::Waiter;
use super::Queues;
use crate::lock::moments::Moments;
use crate::lock::{Owner, WaiterId};

impl Queues {
    /// All requests.
    pub fn iter(&self) -> impl Iterator<Item = (WaiterId, &Waiter)> {
        self.waiters.iter().map(|(id, waiter)| (*id, &**waiter))
    }

    /// Asserts that the indexes say the same.
    pub fn check(&self) {
        let waiters = || self.iter().map(|(_, waiter)| waiter);
        let twice = |owner: &Owner| self.waits_twice(self.hash(owner), owner);
        for (id, waiter) in self.iter() {
            assert!(self.ids_of(&waiter.want.owner).any(|other| other == id));
            for key in &waiter.keys {
                let line = &self.lines[key];
                assert_eq!(line.queue.at(&waiter.rank), Some(id), "{waiter:?}");
                let entangled = twice(&waiter.want.owner).then_some(id);
                assert_eq!(line.entangled.at(&waiter.rank), entangled, "{waiter:?}");
            }
        }
        let places = waiters().map(|waiter| waiter.keys.len()).sum();
        for (key, line) in &self.lines {
            line.check(self.waiting(key));
        }
        self.lengths.check(&self.lines);
        let lines = self.lines.values();
        assert_eq!(lines.map(|line| line.queue.len()).sum::<usize>(), places);
        assert!(self.lines.values().all(|line| !line.queue.is_empty()));
        assert_eq!(self.by_owner.len(), self.waiters.len());
        assert!(self.places.keys().all(twice), "places of an owner with one");
        for key in self.keys() {
            let oldest = self.waiting(key).map(|waiter| waiter.since).min();
            assert_eq!(self.oldest_of(key), oldest);
        }
        let mut since = Moments::default();
        waiters().for_each(|waiter| since.add(waiter.since.ms()));
        assert_eq!(self.since, since);
        for (client, id) in &self.by_client {
            let waiter = self.get(*id);
            assert_eq!(waiter.and_then(Waiter::blocked), Some(*client));
        }
        let count = |of: fn(&Waiter) -> bool| waiters().filter(|waiter| of(waiter)).count();
        assert_eq!(self.by_client.len(), count(|w| w.blocked().is_some()));
        assert_eq!(self.queued, count(|w| w.queued));
        assert_eq!(self.timeouts.len(), count(|w| w.until().is_some()));
    }
}
