//! Who waits, and where: a request stands in the queue of each of its keys, under
//! one rank.

use super::acquire::Want;
use super::rank::Rank;
use super::{Bytes, Core, Decision, Effect, Key, Now, Outcome, WaiterId};

/// A request that stands in a queue.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// One, or for MACQUIRE several; each once.
    pub keys: Vec<Key>,
    pub want: Want,
    pub once: bool,
    pub rank: Rank,
    /// Since when it waits, monotonic us.
    pub since: i64,
    /// When its BLOCK time is over, monotonic us.
    pub until: Option<i64>,
}

impl Waiter {
    /// It wants several keys at once.
    pub fn is_many(&self) -> bool {
        self.keys.len() > 1
    }

    /// After a stall of the server: its time was over before the lock was free.
    pub fn is_late(&self, now: Now) -> bool {
        self.until.is_some_and(|until| until <= now.mono_us)
    }
}

impl Core {
    /// The number of the next request that waits.
    pub(super) fn next_waiter(&mut self) -> WaiterId {
        self.last_waiter = self.last_waiter.saturating_add(1);
        self.last_waiter
    }

    /// Puts a request into its queues.
    pub(super) fn insert(&mut self, id: WaiterId, waiter: Waiter) {
        self.timeouts.change(&id, None, waiter.until);
        let owner = waiter.want.owner.clone();
        let was_entangled = self.waits_twice(&owner);
        self.by_owner.entry(owner.clone()).or_default().insert(id);
        if waiter.want.client != 0 {
            self.by_client.insert(waiter.want.client, id);
        }
        for key in &waiter.keys {
            let entry = self.entry_or_new(key);
            entry.enqueue(waiter.rank.clone(), id);
            if entry.queue().len() == 1 {
                self.waited_for.insert(key.clone());
            }
        }
        self.waiters.insert(id, waiter);
        if was_entangled {
            self.mark(id, true);
        } else if self.waits_twice(&owner) {
            self.mark_all(&owner, true);
        }
    }

    /// Takes a request out of its queues. Those behind it in them may be next.
    pub(super) fn dequeue(&mut self, id: WaiterId) -> Option<Waiter> {
        let owner = self.waiters.get(&id)?.want.owner.clone();
        let was_entangled = self.waits_twice(&owner);
        if was_entangled {
            self.mark(id, false);
        }
        let waiter = self.waiters.remove(&id)?;
        self.timeouts.change(&id, waiter.until, None);
        if let Some(requests) = self.by_owner.get_mut(&owner) {
            requests.remove(id);
            if requests.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        if self.by_client.get(&waiter.want.client) == Some(&id) {
            self.by_client.remove(&waiter.want.client);
        }
        for key in &waiter.keys {
            let Some(entry) = self.entry_mut(key) else {
                continue;
            };
            let was_first = entry.queue().first_key_value().map(|(_, id)| *id) == Some(id);
            entry.dequeue(&waiter.rank);
            let is_empty = entry.queue().is_empty();
            if is_empty {
                self.waited_for.remove(key);
            }
            if is_empty && !self.has_place(key) {
                self.pending.remove(key);
                self.later.pending.remove(key);
            } else if was_first {
                self.pending.insert(key.clone());
            }
            self.tidy(key);
        }
        if was_entangled && !self.waits_twice(&owner) {
            self.mark_all(&owner, false);
        }
        Some(waiter)
    }

    /// The place of an upgrade in the queue of a key: behind those that came before,
    /// ahead of all others.
    pub(super) fn front(&self, key: &Key, id: WaiterId) -> Rank {
        let reads = |owner: &[u8]| self.knows_reader(key.db, &key.name, owner);
        let queue = self.entry(key).into_iter().flat_map(|e| e.queue().values());
        let waiters = queue.filter_map(|other| self.waiters.get(other));
        let mut ahead = waiters.take_while(|other| other.rank.is_front());
        match ahead.find(|other| !reads(&other.want.owner)) {
            // Its lease has ended since it asked to write.
            Some(other) => Rank::just_before(&other.rank, id),
            None => Rank::front(id),
        }
    }

    /// Gives a request another place.
    pub(super) fn rerank(&mut self, id: WaiterId, rank: Rank) {
        let pending = self.pending.clone();
        if let Some(waiter) = self.dequeue(id) {
            self.pending = pending;
            self.insert(id, Waiter { rank, ..waiter });
        }
    }

    /// Whether an owner waits in more than one place: only through such owners can
    /// waiting go round in a circle.
    fn waits_twice(&self, owner: &[u8]) -> bool {
        let requests = self.by_owner.get(owner);
        requests.is_some_and(|requests| {
            let only = requests.only().and_then(|id| self.waiters.get(&id));
            only.is_none_or(Waiter::is_many)
        })
    }

    /// The requests of an owner for a key, in order.
    pub(super) fn requests(&self, owner: &[u8], key: &Key) -> Vec<(Rank, WaiterId)> {
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
    pub(super) fn first_of(&self, owner: &Bytes, key: &Key) -> Option<&Rank> {
        let requests = self.by_owner.get(owner)?;
        match requests.only() {
            Some(id) => self.waiters.get(&id).map(|waiter| &waiter.rank),
            None => requests.on(key).first().map(|(rank, _)| rank),
        }
    }

    /// Marks the places of all of an owner's requests, or takes the marks away. It
    /// has one or two requests then.
    fn mark_all(&mut self, owner: &[u8], on: bool) {
        let requests = self.by_owner.get(owner);
        let ids: Vec<WaiterId> = requests.iter().flat_map(|r| r.ids()).collect();
        for id in ids {
            self.mark(id, on);
        }
    }

    fn mark(&mut self, id: WaiterId, on: bool) {
        let Some(waiter) = self.waiters.get(&id) else {
            return;
        };
        let (keys, rank) = (waiter.keys.clone(), waiter.rank.clone());
        let owner = waiter.want.owner.clone();
        for key in &keys {
            if let Some(requests) = self.by_owner.get_mut(&owner) {
                requests.mark(key, &rank, id, on);
            }
            if let Some(entry) = self.entry_mut(key) {
                entry.entangle(&rank, id, on);
            }
        }
    }

    /// Whether somebody waits for the key.
    pub(super) fn is_waited_for(&self, key: &Key) -> bool {
        let somewhere = !self.waited_for.is_empty() || self.has_subscribers();
        somewhere && self.next(key).is_some()
    }

    /// The queue of a key is to be looked at before the decision is over.
    pub(super) fn look_later(&mut self, key: &Key) {
        if self.is_waited_for(key) {
            self.pending.insert(key.clone());
        }
    }

    /// Takes a request out of the queue, however it ended. Harmless if it is not
    /// in one any more. Whom that lets in is up to a [`Core::review`].
    pub fn leave(&mut self, id: WaiterId) {
        self.give_up(id);
        self.unsettle();
    }

    /// A connection is closed: nobody is there any more to be granted anything.
    pub(super) fn stop_waiting(&mut self, client: u64) {
        if let Some(id) = self.by_client.get(&client).copied() {
            self.give_up(id);
        }
    }

    /// Takes a request out of its queues that gets nothing. Those of its owner's
    /// that stood behind it there now stand behind others.
    pub(super) fn give_up(&mut self, id: WaiterId) {
        let Some(waiter) = self.dequeue(id) else {
            return;
        };
        let owner = waiter.want.owner;
        if self.by_owner.contains_key(&owner) {
            for key in waiter.keys {
                self.look_later(&key);
            }
            self.suspects.insert(owner);
        }
    }
}

/// Ends the waits whose BLOCK time is over.
pub fn time_out(d: &mut Decision<'_>, most: usize) {
    let limit = d.now.mono_us.saturating_add(1);
    for id in d.core.timeouts.before(limit, most) {
        timed_out(d, id);
    }
    d.core.unsettle();
}

/// The BLOCK time of a request is over.
pub fn timed_out(d: &mut Decision<'_>, id: WaiterId) {
    d.core.give_up(id);
    super::stats::Counters::up(&mut d.core.counters.timed_out);
    d.out.push(Effect::Answer {
        waiter: id,
        outcome: Outcome::TimedOut,
    });
}
