//! Who waits, and where: a request stands in the queue of each of its keys, under
//! one rank.
//!
//! All indexes of requests are here, and only here are they changed. What follows for
//! a key whose first waiter has left is up to whoever took it out ([`Gone`]).

mod by_owner;
#[cfg(test)]
mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::ops::Bound;

use foldhash::quality;

use super::kept::Kept;
use super::lengths::Lengths;
use super::line::{Line, NOBODY};
use super::places::Places;
use super::portion::Portion;
use super::sent_away::{SentAway, Which};
use super::waiter::Waiter;
use crate::lock::deadlines::Deadlines;
use crate::lock::moments::Moments;
use crate::lock::{ClientId, Key, MonoUs, Now, Owner, Refusal, WaiterId};

/// A request that was taken out of its queues.
#[derive(Debug)]
pub struct Gone {
    pub waiter: Waiter,
    /// The keys of which it was the first, and others wait.
    pub led: Vec<Key>,
    /// The keys that nobody waits for any more.
    pub emptied: Vec<Key>,
    /// The keys of which its owner held permits when it was marked.
    hoards: Vec<Key>,
}

#[derive(Clone, Debug, Default)]
pub struct Queues {
    /// In a tree: a table grows in one go, and with a hundred thousand that would be a stall.
    waiters: BTreeMap<WaiterId, Box<Waiter>>,
    /// By the hash of the owner's name: which owner it is, the request tells.
    by_owner: BTreeSet<(u64, WaiterId)>,
    /// Its hashes are told to nobody, who could find owners by them that are alike.
    hasher: quality::RandomState,
    /// Of owners that wait in several places.
    places: BTreeMap<Owner, Places>,
    /// Of clients that are blocked. Those of others are found by their tags (`sessions`).
    by_client: BTreeSet<(ClientId, WaiterId)>,
    /// Of the keys that somebody waits for.
    lines: BTreeMap<Key, Line>,
    lengths: Lengths,
    /// When their times are over.
    timeouts: Deadlines<MonoUs, WaiterId>,
    /// How many of them are told at an address how their wait ends,
    queued: usize,
    /// and which are to be refused, as the server sends blocked clients away.
    sent_away: SentAway,
    /// Of requests that may be sent again.
    kept: Kept,
    /// Since when they wait.
    since: Moments,
    /// The number of the next request.
    next: WaiterId,
}

impl Queues {
    /// The number of the next request.
    pub fn number(&mut self) -> WaiterId {
        let number = self.next;
        self.next = number.next();
        number
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn get(&self, id: WaiterId) -> Option<&Waiter> {
        self.waiters.get(&id).map(|waiter| &**waiter)
    }

    /// Who waits for a key.
    pub fn line(&self, key: &Key) -> &Line {
        self.lines.get(key).unwrap_or(&NOBODY)
    }

    /// The requests that wait for a key, in order.
    pub fn waiting(&self, key: &Key) -> impl Iterator<Item = &Waiter> {
        self.line(key).queue.ids().filter_map(|id| self.get(id))
    }

    /// The keys that somebody waits for, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.lines.keys()
    }

    /// The first of them in a database from this one on.
    pub fn key_from(&self, db: i32, from: Bound<&Key>) -> Option<&Key> {
        let mut keys = self.lines.range((from, Bound::Unbounded));
        keys.next().map(|(key, _)| key).filter(|key| key.db == db)
    }

    /// The same, those that most wait for first, and of these the one whose first came first.
    pub fn longest(&self, most: usize) -> Vec<Key> {
        self.lengths.first(&self.lines, most)
    }

    /// The requests of a connection that is blocked.
    pub fn of_client(&self, client: ClientId) -> impl Iterator<Item = WaiterId> + '_ {
        let from = self.by_client.range((client, WaiterId::FIRST)..);
        let its = from.take_while(move |(other, _)| *other == client);
        its.map(|(_, id)| *id)
    }

    /// How many requests wait whose client is not blocked.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// All of those are to be refused.
    pub fn send_all_away(&mut self) {
        self.sent_away.add_all(self.next);
    }

    /// These of the requests that wait for a key are. They are gone over some at a time, and once
    /// however often that is asked for meanwhile.
    pub fn send_away(&mut self, key: &Key, which: Which, why: &Refusal) {
        // A whole line of clients that are blocked is not gone over for nobody.
        let may_be_some = which != Which::Queued || self.queued > 0;
        if may_be_some && self.lines.contains_key(key) {
            self.sent_away.add_line(key, which, why, self.next);
        }
    }

    /// The next that are to be refused, with so many keys, and a key that is to be looked at then.
    pub fn take_sent_away(&mut self, keys: usize) -> (Vec<(WaiterId, Refusal)>, Option<Key>) {
        let all = (&self.waiters, &self.lines);
        self.sent_away.take(all, Portion::new(keys))
    }

    /// Whether any that wait for a key may be among those.
    pub fn may_be_sent_away(&self, key: &Key) -> bool {
        self.sent_away.may_have(key)
    }

    pub fn any_sent_away(&self) -> bool {
        !self.sent_away.is_empty()
    }

    /// When the first of their times is over.
    pub fn next_timeout(&self) -> Option<MonoUs> {
        self.timeouts.first()
    }

    /// Since when the oldest of all requests waits, ms.
    pub fn oldest(&self) -> Option<i64> {
        self.since.first()
    }

    /// The requests whose time is over, with so many keys.
    pub fn over(&self, now: Now, keys: usize) -> Vec<WaiterId> {
        let over = self.timeouts.at(now.mono, keys);
        Portion::new(keys).of(over, |id| self.get(id))
    }

    /// Puts a request into its queues. The keys that nobody waited for before.
    pub fn insert(&mut self, id: WaiterId, waiter: Waiter) -> Vec<Key> {
        self.timeouts.change(&id, None, waiter.until());
        self.since.add(waiter.since.ms());
        let owner = waiter.want.owner.clone();
        let hash = self.hash(&owner);
        let is_another = self.ids_by(hash, &owner).next().is_some();
        let was_entangled = is_another && self.waits_twice(hash, &owner);
        let is_entangled = is_another || waiter.is_many();
        self.by_owner.insert((hash, id));
        if let Some(client) = waiter.blocked() {
            self.by_client.insert((client, id));
        }
        self.queued = self.queued.saturating_add(usize::from(waiter.queued));
        let mut new = Vec::new();
        for key in &waiter.keys {
            let line = self.lines.entry(key.clone()).or_default();
            if line.queue.is_empty() {
                new.push(key.clone());
            }
            self.lengths.was(key, line);
            let other = line.insert(id, &waiter);
            self.lengths.is(key, line);
            debug_assert_eq!(other, None, "no two stand in one place");
        }
        self.lengths.are(&self.lines);
        let other = self.waiters.insert(id, Box::new(waiter));
        debug_assert!(other.is_none(), "no two requests have one number");
        if was_entangled {
            self.mark(id, true);
        } else if is_entangled {
            self.mark_all(&owner, true);
        }
        new
    }

    /// Takes a request out of its queues. `None`: it is in none.
    pub fn remove(&mut self, id: WaiterId) -> Option<Gone> {
        let owner = self.get(id)?.want.owner.clone();
        let hash = self.hash(&owner);
        let was_entangled = self.waits_twice(hash, &owner);
        if was_entangled {
            self.mark(id, false);
        }
        let waiter = *self.waiters.remove(&id)?;
        self.timeouts.change(&id, waiter.until(), None);
        self.since.remove(waiter.since.ms());
        self.by_owner.remove(&(hash, id));
        if let Some(client) = waiter.blocked() {
            self.by_client.remove(&(client, id));
        }
        self.queued = self.queued.saturating_sub(usize::from(waiter.queued));
        let (mut led, mut emptied, mut hoards) = (Vec::new(), Vec::new(), Vec::new());
        for key in &waiter.keys {
            let Some(line) = self.lines.get_mut(key) else {
                continue;
            };
            let was_first = line.first().is_some_and(|(_, first)| first == id);
            self.lengths.was(key, line);
            let its = line.remove(&waiter);
            self.lengths.is(key, line);
            debug_assert_eq!(its, Some(id), "who waits stands in its place");
            if line.hoarders.remove(&id) {
                hoards.push(key.clone());
            }
            if line.queue.is_empty() {
                self.lines.remove(key);
                emptied.push(key.clone());
            } else if was_first {
                led.push(key.clone());
            }
        }
        self.lengths.are(&self.lines);
        if was_entangled && !self.waits_twice(hash, &owner) {
            self.mark_all(&owner, false);
        }
        Some(Gone {
            waiter,
            led,
            emptied,
            hoards,
        })
    }

    /// The connection of a request is closed: its place is kept for so many ms.
    pub fn keep_place(&mut self, id: WaiterId, ms: i64, now: Now) {
        if let Some(waiter) = self.waiters.get(&id).filter(|w| w.keeps_its_place()) {
            self.kept.keep(waiter, ms, now);
        }
    }

    /// Until when the first of those is kept.
    pub fn next_place_over(&self) -> Option<MonoUs> {
        self.kept.next_end()
    }

    /// The places of requests whose connection is closed.
    pub fn kept(&mut self) -> &mut Kept {
        &mut self.kept
    }

    /// A newer request takes the place of an older one for the same keys.
    pub fn replace(&mut self, old: WaiterId, id: WaiterId, waiter: Waiter) {
        let gone = self.remove(old);
        self.insert(id, waiter);
        for key in gone.into_iter().flat_map(|gone| gone.hoards) {
            self.hoards(&key, id);
        }
    }

    /// Since when the longest waits of those who wait for a key.
    pub fn oldest_of(&self, key: &Key) -> Option<MonoUs> {
        // Those who were let past others stand before the first who was not.
        let mut behind = false;
        let waiting = self.waiting(key);
        let ahead = waiting.take_while(|w| !std::mem::replace(&mut behind, w.rank.is_of_arrival()));
        ahead.map(|waiter| waiter.since).min()
    }

    /// Gives a request another place.
    pub fn rerank(&mut self, id: WaiterId, place: impl FnOnce(&mut Waiter)) {
        if let Some(Gone {
            mut waiter, hoards, ..
        }) = self.remove(id)
        {
            place(&mut waiter);
            self.insert(id, waiter);
            hoards.iter().for_each(|key| self.hoards(key, id));
        }
    }

    /// As [`Self::ids_of`], for those who have the hash.
    fn ids_by<'a, 'o>(
        &'a self,
        hash: u64,
        owner: &'o [u8],
    ) -> impl Iterator<Item = WaiterId> + use<'a, 'o> {
        self.ids_from(hash, owner, WaiterId::FIRST)
    }

    /// As [`Self::ids_by`], from this number on.
    fn ids_from<'a, 'o>(
        &'a self,
        hash: u64,
        owner: &'o [u8],
        first: WaiterId,
    ) -> impl Iterator<Item = WaiterId> + use<'a, 'o> {
        let from = self.by_owner.range((hash, first)..);
        let like = from.take_while(move |(other, _)| *other == hash);
        let its = |waiter: &Waiter| *waiter.want.owner == *owner;
        let ids = like.map(|(_, id)| *id);
        ids.filter(move |id| self.get(*id).is_some_and(its))
    }

    fn hash(&self, owner: &[u8]) -> u64 {
        self.hasher.hash_one(owner)
    }

    /// Whether an owner waits in more than one place.
    fn waits_twice(&self, hash: u64, owner: &[u8]) -> bool {
        let mut requests = self.ids_by(hash, owner).filter_map(|id| self.get(id));
        requests.next().is_some_and(Waiter::is_many) || requests.next().is_some()
    }

    /// Marks the places of all of an owner's requests, or takes the marks away. It
    /// has one or two requests then.
    fn mark_all(&mut self, owner: &[u8], on: bool) {
        let ids: Vec<WaiterId> = self.ids_by(self.hash(owner), owner).collect();
        for id in ids {
            self.mark(id, on);
        }
    }

    fn mark(&mut self, id: WaiterId, on: bool) {
        let Some(waiter) = self.waiters.get(&id) else {
            return;
        };
        let owner = &waiter.want.owner;
        let places = self.places.entry(owner.clone()).or_default();
        for key in &waiter.keys {
            if on {
                places.mark(key, &waiter.rank, id);
            } else {
                places.unmark(key, &waiter.rank);
            }
            let Some(line) = self.lines.get_mut(key) else {
                continue;
            };
            if on {
                line.entangled.insert(waiter.rank.clone(), id);
            } else {
                line.entangled.remove(&waiter.rank);
            }
        }
        if places.is_empty() {
            self.places.remove(owner);
        }
    }

    /// A request was tried, and lacks this one of its keys.
    pub fn set_lacks(&mut self, id: WaiterId, place: usize) {
        if let (Some(waiter), Ok(place)) = (self.waiters.get_mut(&id), u32::try_from(place)) {
            waiter.lacks = place;
        }
    }

    /// The owner of a request holds permits of the lock that it waits for.
    pub fn hoards(&mut self, key: &Key, id: WaiterId) {
        if let Some(line) = self.lines.get_mut(key) {
            line.hoarders.insert(id);
        }
    }
}
