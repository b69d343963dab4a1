//! What operators are told of a lock beyond what its key says.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Core;
use crate::lock::kind::FEW_FIELDS;
use crate::lock::queue::Waiter;
use crate::lock::table::{Entry, Hold};
use crate::lock::{
    reconcile, ClientId, Foreign, Holder, Key, Keyspace, Kind, Lease, Look, Mode, Now, Owner, Pool,
    Refusal, Share, Token,
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
}

impl Known {
    /// Of a hold in one of its modes.
    pub(super) fn of(now: Now, hold: &Hold, mode: Mode) -> Self {
        Self {
            token: hold.token(),
            held_ms: hold.held_ms(now),
            watchdog: hold.watcher(mode),
        }
    }
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
        hold.map_or_else(Known::default, |hold| Known::of(now, hold, mode))
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
        let entry = self.locks.get(key);
        let beside = entry.map(|entry| entry.beside(None)).unwrap_or_default();
        let look = reconcile::judge(entry, &[], ks.look_with_hint(key, &[], beside));
        let no_lock = |why| {
            let key = key.clone();
            Err(Refusal::NotALock { key, why })
        };
        let mut holders = match look.kind {
            Kind::Free => return Ok(Vec::new()),
            Kind::Foreign(Foreign::NoTtl) if look.fields <= FEW_FIELDS => {
                let holders = ks.holders(key).len();
                return no_lock(reconcile::why_no_lock(&look, holders));
            }
            Kind::Foreign(why) => return no_lock(why),
            Kind::Permits(_) => {
                let holders = permits(ks, now, key, most);
                return holders.or_else(|()| no_lock(Foreign::OtherHash));
            }
            Kind::Plain | Kind::ReadWrite(_) if look.fields > most.max(FEW_FIELDS) => {
                let known = entry.and_then(|entry| some_known(ks, key, entry, &look, most));
                let some = known.or_else(|| some_found(ks, key, most));
                return some.ok_or(()).or_else(|()| no_lock(Foreign::OtherHash));
            }
            Kind::Plain | Kind::ReadWrite(_) => ks.holders(key),
        };
        for holder in &mut holders {
            // Somebody made a read/write lock of a plain one.
            let plain = entry.is_some_and(|entry| entry.plain_of(&holder.owner).is_some());
            if holder.lease.is_missing() && plain {
                holder.mode = Mode::Exclusive;
                holder.lease = Lease::of(look.expires);
            }
        }
        let all = holders.len();
        holders.retain(|holder| holder.lease != Lease::Gone);
        // A hash with a field `mode` that is somebody's data.
        let is_held = || all > 0 || entry.is_some_and(Entry::is_held);
        if all != look.fields || !is_held() {
            return no_lock(Foreign::OtherHash);
        }
        holders.sort_by(|a, b| (a.mode, &a.owner).cmp(&(b.mode, &b.owner)));
        Ok(holders)
    }

    /// The permits of a lock, if it is held by such.
    pub fn pool_of<K: Keyspace>(&self, ks: &mut K, key: &Key) -> Option<Pool> {
        match reconcile::judge(self.locks.get(key), &[], ks.look(key, &[])).kind {
            Kind::Permits(pool) => Some(pool),
            _ => None,
        }
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

/// So many of very many holders of a read/write lock, if all of them are known.
fn some_known<K: Keyspace>(
    ks: &mut K,
    key: &Key,
    entry: &Entry,
    look: &Look,
    most: usize,
) -> Option<Vec<Holder>> {
    let shared = entry.shared()?;
    if entry.plain().is_some() || entry.fields() != look.fields {
        return None;
    }
    let writer = shared.writer().and_then(|owner| shared.party(owner));
    let rest = shared.parties().filter(|party| !party.writes);
    let mut holders = Vec::new();
    for party in writer.into_iter().chain(rest) {
        if holders.len() >= most {
            break;
        }
        let owner = &party.hold.owner;
        let found = ks.look(key, owner);
        if (party.reads, party.writes) != (found.holds > 0, found.writes > 0) {
            return None;
        }
        let of_hash = Lease::of(found.expires);
        let all = [
            (Mode::Write, found.writes, of_hash),
            (Mode::Read, found.holds, found.lease),
        ];
        let held = all
            .into_iter()
            .filter(|(_, holds, lease)| *holds > 0 && *lease != Lease::Gone);
        holders.extend(held.map(|(mode, holds, lease)| Holder {
            owner: owner.clone(),
            mode,
            holds,
            lease,
        }));
    }
    Some(holders)
}

/// So many of very many who are not known; `None`: what was read of it shows that it is no
/// lock.
fn some_found<K: Keyspace>(ks: &mut K, key: &Key, most: usize) -> Option<Vec<Holder>> {
    let mut holders = ks.some_holders(key, most.max(FEW_FIELDS));
    let any = !holders.is_empty();
    holders.retain(|holder| holder.lease != Lease::Gone);
    holders.sort_by(|a, b| (a.mode, &a.owner).cmp(&(b.mode, &b.owner)));
    any.then_some(holders)
}

/// Some who hold permits, in the order of their names. It fails where a field is no permit.
fn permits<K: Keyspace>(ks: &mut K, now: Now, key: &Key, most: usize) -> Result<Vec<Holder>, ()> {
    let mut holders = BTreeMap::new();
    let mut cursor = Some(0);
    while let Some(from) = cursor.filter(|_| holders.len() < most) {
        let part = ks.some_fields(key, from);
        if part.wrong.is_some() {
            return Err(());
        }
        let live = part.holders.into_iter();
        let live = live.filter(|holder| holder.lease >= Lease::Until(now.wall_ms()));
        holders.extend(live.map(|holder| (holder.owner.clone(), holder)));
        cursor = part.next;
    }
    Ok(holders.into_values().take(most).collect())
}
