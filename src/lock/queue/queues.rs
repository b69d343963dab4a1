//! Who waits, and where: a request stands in the queue of each of its keys, under
//! one rank.
//!
//! All indexes of requests are here, and only here are they changed. What follows for
//! a key whose first waiter has left is up to whoever took it out ([`Gone`]).

use std::collections::{BTreeMap, HashMap};

use super::rank::Rank;
use super::requests::Requests;
use super::waiter::Waiter;
use crate::lock::deadlines::Deadlines;
use crate::lock::{ClientId, Key, MonoUs, Now, Owner, WaiterId};

/// Requests in order, or some of them.
pub type Order = BTreeMap<Rank, WaiterId>;

static NOBODY: Line = Line {
    queue: Order::new(),
    entangled: Order::new(),
};

/// Those who wait for one key.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub queue: Order,
    /// Those of them whose owners wait in another place too: only through such can
    /// waiting go round in a cycle.
    pub entangled: Order,
}

impl Line {
    pub fn first(&self) -> Option<(&Rank, WaiterId)> {
        let first = self.queue.first_key_value();
        first.map(|(rank, id)| (rank, *id))
    }
}

/// A request that was taken out of its queues.
#[derive(Debug)]
pub struct Gone {
    pub waiter: Waiter,
    /// The keys of which it was the first, and others wait.
    pub led: Vec<Key>,
    /// The keys that nobody waits for any more.
    pub emptied: Vec<Key>,
}

#[derive(Clone, Debug, Default)]
pub struct Queues {
    waiters: HashMap<WaiterId, Waiter>,
    by_owner: HashMap<Owner, Requests>,
    by_client: HashMap<ClientId, WaiterId>,
    /// Of the keys that somebody waits for.
    lines: BTreeMap<Key, Line>,
    /// When BLOCK times are over.
    timeouts: Deadlines<MonoUs, WaiterId>,
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
        self.waiters.get(&id)
    }

    /// Who waits for a key.
    pub fn line(&self, key: &Key) -> &Line {
        self.lines.get(key).unwrap_or(&NOBODY)
    }

    /// The requests that wait for a key, in order.
    pub fn waiting(&self, key: &Key) -> impl Iterator<Item = &Waiter> {
        let ids = self.line(key).queue.values();
        ids.filter_map(|id| self.waiters.get(id))
    }

    /// The keys that somebody waits for, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.lines.keys()
    }

    /// The request of a connection.
    pub fn of_client(&self, client: ClientId) -> Option<WaiterId> {
        self.by_client.get(&client).copied()
    }

    /// An owner that waits, by the copy of its name that is kept.
    pub fn owner(&self, owner: &[u8]) -> Option<&Owner> {
        self.by_owner.get_key_value(owner).map(|(owner, _)| owner)
    }

    /// The requests of an owner.
    pub fn of_owner(&self, owner: &[u8]) -> impl Iterator<Item = &Waiter> + '_ {
        self.ids_of(owner).filter_map(|id| self.waiters.get(&id))
    }

    pub fn ids_of(&self, owner: &[u8]) -> impl Iterator<Item = WaiterId> + '_ {
        let requests = self.by_owner.get(owner);
        requests.into_iter().flat_map(|of| of.ids.iter().copied())
    }

    /// When the first BLOCK time is over.
    pub fn next_timeout(&self) -> Option<MonoUs> {
        self.timeouts.first()
    }

    /// The requests whose BLOCK time is over, at most so many.
    pub fn over(&self, now: Now, most: usize) -> Vec<WaiterId> {
        self.timeouts.at(now.mono, most)
    }

    /// Puts a request into its queues. The keys that nobody waited for before.
    pub fn insert(&mut self, id: WaiterId, waiter: Waiter) -> Vec<Key> {
        self.timeouts.change(&id, None, waiter.until);
        let owner = waiter.want.owner.clone();
        let was_entangled = self.waits_twice(&owner);
        let requests = self.by_owner.entry(owner.clone()).or_default();
        requests.ids.insert(id);
        if let Some(client) = waiter.want.client {
            self.by_client.insert(client, id);
        }
        let mut new = Vec::new();
        for key in &waiter.keys {
            let line = self.lines.entry(key.clone()).or_default();
            if line.queue.is_empty() {
                new.push(key.clone());
            }
            let other = line.queue.insert(waiter.rank.clone(), id);
            debug_assert_eq!(other, None, "no two stand in one place");
        }
        self.waiters.insert(id, waiter);
        if was_entangled {
            self.mark(id, true);
        } else if self.waits_twice(&owner) {
            self.mark_all(&owner, true);
        }
        new
    }

    /// Takes a request out of its queues. `None`: it is in none.
    pub fn remove(&mut self, id: WaiterId) -> Option<Gone> {
        let owner = self.waiters.get(&id)?.want.owner.clone();
        let was_entangled = self.waits_twice(&owner);
        if was_entangled {
            self.mark(id, false);
        }
        let waiter = self.waiters.remove(&id)?;
        self.timeouts.change(&id, waiter.until, None);
        if let Some(requests) = self.by_owner.get_mut(&owner) {
            requests.ids.remove(&id);
            if requests.ids.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        if let Some(client) = waiter.want.client {
            if self.by_client.get(&client) == Some(&id) {
                self.by_client.remove(&client);
            }
        }
        let (mut led, mut emptied) = (Vec::new(), Vec::new());
        for key in &waiter.keys {
            let Some(line) = self.lines.get_mut(key) else {
                continue;
            };
            let was_first = line.first().is_some_and(|(_, first)| first == id);
            let its = line.queue.remove(&waiter.rank);
            debug_assert_eq!(its, Some(id), "who waits stands in its place");
            if line.queue.is_empty() {
                self.lines.remove(key);
                emptied.push(key.clone());
            } else if was_first {
                led.push(key.clone());
            }
        }
        if was_entangled && !self.waits_twice(&owner) {
            self.mark_all(&owner, false);
        }
        Some(Gone {
            waiter,
            led,
            emptied,
        })
    }

    /// Gives a request another place.
    pub fn rerank(&mut self, id: WaiterId, rank: Rank) {
        if let Some(Gone { waiter, .. }) = self.remove(id) {
            self.insert(id, Waiter { rank, ..waiter });
        }
    }

    /// Whether an owner waits in more than one place.
    fn waits_twice(&self, owner: &[u8]) -> bool {
        let requests = self.by_owner.get(owner);
        requests.is_some_and(|requests| {
            let only = requests.only().and_then(|id| self.waiters.get(&id));
            only.is_none_or(Waiter::is_many)
        })
    }

    /// The requests of an owner for a key, in order.
    pub fn requests(&self, owner: &[u8], key: &Key) -> Vec<(Rank, WaiterId)> {
        let Some(requests) = self.by_owner.get(owner) else {
            return Vec::new();
        };
        let Some(id) = requests.only() else {
            return requests.on(key).to_vec();
        };
        let waiter = self.waiters.get(&id).filter(|w| w.keys.contains(key));
        waiter.map_or_else(Vec::new, |waiter| vec![(waiter.rank.clone(), id)])
    }

    /// The place of an owner's first request for a key that it waits for.
    pub fn first_of(&self, owner: &Owner, key: &Key) -> Option<&Rank> {
        let requests = self.by_owner.get(owner)?;
        match requests.only() {
            Some(id) => self.waiters.get(&id).map(|waiter| &waiter.rank),
            None => requests.on(key).first().map(|(rank, _)| rank),
        }
    }

    /// Marks the places of all of an owner's requests, or takes the marks away. It
    /// has one or two requests then.
    fn mark_all(&mut self, owner: &[u8], on: bool) {
        let ids: Vec<WaiterId> = self.ids_of(owner).collect();
        for id in ids {
            self.mark(id, on);
        }
    }

    fn mark(&mut self, id: WaiterId, on: bool) {
        let Some(waiter) = self.waiters.get(&id) else {
            return;
        };
        let mut requests = self.by_owner.get_mut(&waiter.want.owner);
        for key in &waiter.keys {
            if let Some(requests) = &mut requests {
                requests.mark(key, &waiter.rank, id, on);
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
    }

    /// All requests.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (WaiterId, &Waiter)> {
        self.waiters.iter().map(|(id, waiter)| (*id, waiter))
    }

    /// Asserts that the indexes say the same.
    #[cfg(test)]
    pub fn check(&self) {
        for (id, waiter) in &self.waiters {
            assert!(self.by_owner[&waiter.want.owner].ids.contains(id));
            for key in &waiter.keys {
                let line = &self.lines[key];
                assert_eq!(line.queue.get(&waiter.rank), Some(id), "{waiter:?}");
                let entangled = self.waits_twice(&waiter.want.owner).then_some(id);
                assert_eq!(line.entangled.get(&waiter.rank), entangled, "{waiter:?}");
            }
        }
        let places = self.waiters.values().map(|waiter| waiter.keys.len()).sum();
        let lines = self.lines.values();
        assert_eq!(lines.map(|line| line.queue.len()).sum::<usize>(), places);
        assert!(self.lines.values().all(|line| !line.queue.is_empty()));
        let owned = self.by_owner.values().map(|requests| requests.ids.len());
        assert_eq!(owned.sum::<usize>(), self.waiters.len());
        let timed = self.waiters.values().filter(|w| w.until.is_some()).count();
        assert_eq!(self.timeouts.len(), timed);
        for (client, id) in &self.by_client {
            assert_eq!(self.waiters[id].want.client, Some(*client));
        }
    }
}
