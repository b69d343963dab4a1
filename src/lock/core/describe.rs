//! What operators are told of a lock beyond what its key says.

use std::cmp::Reverse;

use super::Core;
use crate::lock::kind;
use crate::lock::queue::Waiter;
use crate::lock::table::Hold;
use crate::lock::{
    reconcile, ClientId, Holder, Key, Keyspace, Mode, Now, Owner, Pool, Refusal, Share, Token,
};

/// A lock's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    pub waiters: usize,
    /// How long the first in the queue has waited, ms.
    pub oldest_wait_ms: Option<i64>,
}

/// What is known of one owner's holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub token: Option<Token>,
    pub held_ms: Option<i64>,
    /// The newest connection that has a watchdog hold there.
    pub watchdog: Option<ClientId>,
    /// Since when somebody waits whom it keeps out, if a connection wants to know.
    pub wanted_ms: Option<i64>,
}

/// One who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub owner: Owner,
    pub mode: Mode,
    pub share: Share,
    pub waited_ms: i64,
    pub client: Option<ClientId>,
}

/// A lock that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contended {
    pub key: Key,
    pub queue: Queue,
}

impl Core {
    /// The queue of a key.
    pub fn describe(&self, now: Now, key: &Key) -> Queue {
        Queue {
            waiters: self.queues.line(key).queue.len(),
            oldest_wait_ms: self
                .queues
                .oldest_of(key)
                .map(|since| now.mono.ms_since(since)),
        }
    }

    /// What is known of an owner's hold under way.
    pub fn hold_of(&self, now: Now, key: &Key, owner: &[u8], mode: Mode) -> Known {
        let hold = self.locks.hold(key, owner);
        hold.map_or_else(Known::default, |hold| self.known(now, key, hold, mode))
    }

    /// The same of a hold in one of its modes.
    pub(super) fn known(&self, now: Now, key: &Key, hold: &Hold, mode: Mode) -> Known {
        let since = self.watchdogs.hints.since(key, &hold.owner);
        let since = since.filter(|_| hold.is_hinted(mode));
        Known {
            token: hold.token(),
            held_ms: hold.held_ms(now),
            watchdog: hold.watcher(mode),
            wanted_ms: since.map(|since| now.mono.ms_since(since)),
        }
    }

    /// Who holds a lock now, whoever excludes most first; of those who hold permits so many at
    /// most. Changes nothing: those whose own lease is over are left out, and left where they
    /// are.
    pub fn holders_of<K: Keyspace>(
        &self,
        ks: &mut K,
        now: Now,
        key: &Key,
        most: usize,
    ) -> Result<Vec<Holder>, Refusal> {
        let known = self.locks.get(key);
        let shown = kind::holders::of(known, ks, now, key, most);
        shown.map_err(|why| {
            let key = key.clone();
            Refusal::NotALock { key, why }
        })
    }

    /// The permits of a lock, if it is held by such.
    pub fn pool_of<K: Keyspace>(&self, ks: &mut K, key: &Key) -> Option<Pool> {
        reconcile::judge(self.locks.get(key), &[], ks.look(key, &[])).pool()
    }

    /// Those who wait for a key, first to last, at most so many.
    pub fn waiters_of(&self, now: Now, key: &Key, most: usize) -> Vec<Waiting> {
        let waiters = self.queues.waiting(key).take(most);
        let describe = |waiter: &Waiter| Waiting {
            owner: waiter.want.owner.clone(),
            mode: waiter.want.mode,
            share: waiter.want.share,
            waited_ms: now.mono.ms_since(waiter.since),
            client: waiter.want.client,
        };
        waiters.map(describe).collect()
    }

    /// The locks with the most waiters, at most so many. Of those with as many the ones whose
    /// first has waited longest.
    pub fn most_contended(&self, now: Now, most: usize) -> Vec<Contended> {
        let describe = |key: &Key| Contended {
            queue: self.describe(now, key),
            key: key.clone(),
        };
        let keys = self.queues.longest(most);
        let mut all: Vec<Contended> = keys.iter().map(describe).collect();
        all.sort_by_key(|lock| {
            let wait = Reverse(lock.queue.oldest_wait_ms);
            (Reverse(lock.queue.waiters), wait)
        });
        all
    }
}
