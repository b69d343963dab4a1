//! What was heard of keys and connections and is to be looked at yet (`run`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::fifo::Fifo;
use super::key::exchanged;
use super::queue::Queues;
use super::table::{Locks, Place};
use super::{Bytes, Cause, ClientId, Key, Owner, WaiterId};

/// One thing to attend to, in the order in which it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The key may have changed.
    Changed(Key, Cause),
    /// A lease key of this reader of the lock may have changed.
    Reader(Key, Owner, Cause),
    /// The first key is the second one now.
    Renamed(Key, Key),
    /// Two databases were exchanged.
    Swapped(i32, i32),
    /// A database was emptied, or all were emptied or loaded anew.
    Replaced(Option<i32>, Cause),
    /// A connection is closed that has waits, or holds that are bound to it.
    Closed(ClientId),
    /// The reply of this grant will never reach its client.
    Lost(WaiterId),
}

/// What was heard of the lease keys of a lock's readers.
pub type Readers = BTreeMap<Owner, Cause>;

/// What was heard of each key, taken together, in the order of first mention. In trees, which
/// give back as they shrink what a crowd took: a hash table keeps it.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Those whose turn is to come.
    order: Fifo<Key>,
    /// With the number of each there.
    causes: BTreeMap<Key, (Cause, u64)>,
    /// Of readers, by their lease keys.
    readers: BTreeMap<Key, Readers>,
    /// Of whole databases.
    sweeps: Fifo<Sweep>,
    /// Connections that are closed: their waits and watchdog holds are to be ended.
    pub closed: BTreeSet<ClientId>,
    /// Grants whose reply is lost.
    pub lost: Vec<WaiterId>,
}

/// All keys of a database are to be looked at that were known at a moment.
#[derive(Clone, Debug)]
struct Sweep {
    db: i32,
    cause: Cause,
    /// Those whose entry has an older stamp.
    stamp: u32,
    /// Those behind it were looked at.
    place: Place,
    /// The database was exchanged for another: who waits there is known of none of these yet.
    exchanged: bool,
    /// The keys that somebody waits for there come first, from this one on.
    lines: Option<Bound<Key>>,
}

impl Sweep {
    /// Whether it means an entry with this stamp.
    fn means(&self, stamp: u32) -> bool {
        self.stamp.wrapping_sub(stamp) as i32 > 0
    }

    /// The next of the keys that somebody waits for.
    fn next_line(&mut self, queues: &Queues) -> Option<Key> {
        let from = self.lines.take()?;
        let next = queues.key_from(self.db, from.as_ref())?.clone();
        self.lines = Some(Bound::Excluded(next.clone()));
        Some(next)
    }
}

impl Heard {
    pub fn of(&mut self, key: Key, cause: Cause) {
        let new = |key: &Key| (cause, self.order.push_back(key.clone()));
        let (heard, _) = self.causes.entry(key).or_insert_with_key(new);
        *heard = cause.max(*heard);
    }

    /// What was heard of a key, which needs no turn any more.
    fn remove(&mut self, key: &Key) -> Option<Cause> {
        let (cause, number) = self.causes.remove(key)?;
        self.order.remove(number);
        Some(cause)
    }

    pub fn of_reader(&mut self, key: Key, owner: Owner, cause: Cause) {
        let readers = self.readers.entry(key).or_default();
        let heard = readers.entry(owner).or_insert(cause);
        *heard = cause.max(*heard);
    }

    /// What was heard of the one name goes for the other; what was heard of that
    /// is void, for its key is gone.
    pub fn renamed(&mut self, locks: &mut Locks, from: &Key, to: &Key) {
        let cause = self.remove(from).max(self.take_swept(locks, from));
        self.remove(to);
        self.of(from.clone(), Cause::Unknown);
        self.of(to.clone(), cause.unwrap_or(Cause::Unknown));
    }

    pub fn swapped(&mut self, one: i32, other: i32) {
        let swap = |db| exchanged(db, one, other);
        for sweep in self.sweeps.iter_mut() {
            let db = swap(sweep.db);
            // Queues stay where they are, and a sweep over those of both begins with this.
            if db != sweep.db {
                sweep.lines = None;
            }
            sweep.db = db;
        }
        let mut order = std::mem::take(&mut self.order);
        let mut causes = std::mem::take(&mut self.causes);
        self.readers.clear();
        while let Some(key) = order.pop_front() {
            if let Some((cause, _)) = causes.remove(&key) {
                let db = swap(key.db);
                self.of(Key { db, ..key }, cause);
            }
        }
    }

    /// Whether a request's connection is closed: nobody is there any more to be granted
    /// anything.
    pub fn is_closed(&self, client: Option<ClientId>) -> bool {
        client.is_some_and(|client| self.closed.contains(&client))
    }

    /// Nothing was heard of single keys. A sweep may be under way: it is about older
    /// things, and is asked of each key.
    pub fn has_no_single_key(&self) -> bool {
        self.causes.is_empty() && self.readers.is_empty()
    }

    /// Nothing is to be looked at.
    pub fn is_empty(&self) -> bool {
        self.has_no_key() && self.closed.is_empty() && self.lost.is_empty()
    }

    fn has_no_key(&self) -> bool {
        self.has_no_single_key() && self.sweeps.is_empty()
    }

    /// All keys of a database of which anything is known, or of all databases, are to
    /// be looked at.
    pub fn begin_sweep(&mut self, locks: &mut Locks, db: Option<i32>, cause: Cause) {
        let mut known = locks.databases();
        known.retain(|known| db.is_none_or(|db| db == *known));
        for db in known {
            self.sweep(locks, db, cause, false);
        }
    }

    /// A database was exchanged for another: all of its keys are to be looked at of which anything
    /// is known, and all that somebody waits for.
    pub fn begin_exchanged(&mut self, locks: &mut Locks, db: i32) {
        self.sweep(locks, db, Cause::Unknown, true);
    }

    fn sweep(&mut self, locks: &mut Locks, db: i32, cause: Cause, exchanged: bool) {
        let name = Bytes::default();
        self.sweeps.push_back(Sweep {
            db,
            cause,
            stamp: locks.begin_sweep(),
            place: Place::END,
            exchanged,
            lines: exchanged.then_some(Bound::Included(Key { db, name })),
        });
    }

    /// Whether a key came from another database, and who waits for it is not known of it yet.
    pub fn is_new_here(&self, locks: &Locks, key: &Key) -> bool {
        if self.sweeps.is_empty() {
            return false;
        }
        let stamp = locks.stamp(key);
        let mut sweeps = self.sweeps.iter();
        let means = |sweep: &Sweep| stamp.is_some_and(|stamp| sweep.means(stamp));
        sweeps.any(|sweep| sweep.exchanged && sweep.db == key.db && means(sweep))
    }

    /// Whether a database was exchanged for another, and who waits there may not be known of some
    /// of its keys.
    pub fn is_exchanged(&self, db: i32) -> bool {
        let mut sweeps = self.sweeps.iter();
        sweeps.any(|sweep| sweep.exchanged && sweep.db == db)
    }

    /// Whether there can be any such.
    pub fn is_any_new(&self) -> bool {
        self.sweeps.iter().any(|sweep| sweep.exchanged)
    }

    /// All that is known of keys is void, and so is what was heard of them.
    pub fn void(&mut self, locks: &mut Locks) {
        let exchanged = self.is_any_new();
        *self = Self::default();
        for db in locks.databases() {
            self.sweep(locks, db, Cause::Demoted, exchanged);
        }
    }

    /// Some keys are known still of which all that is known is void.
    pub fn is_any_void(&self) -> bool {
        let next = self.sweeps.front();
        next.is_some_and(|sweep| sweep.cause == Cause::Demoted)
    }

    /// The next of those.
    pub fn next_void(&mut self, locks: &Locks, queues: &Queues, most: usize) -> Vec<Key> {
        let mut keys = Vec::new();
        if self.is_any_void() {
            self.swept_keys((locks, queues), most, &mut keys);
        }
        keys
    }

    /// The next keys that are to be looked at, at most so many of each kind: those of
    /// which something was heard, those of readers, those of whole databases.
    pub fn next_keys(&mut self, locks: &Locks, queues: &Queues, most: usize) -> Vec<Key> {
        let mut keys = Vec::new();
        while let Some(key) = self.order.pop_front() {
            keys.push(key);
            if keys.len() >= most {
                break;
            }
        }
        if self.order.is_empty() {
            keys.extend(self.readers.keys().take(most).cloned());
        }
        let room = most.saturating_sub(keys.len());
        self.swept_keys((locks, queues), room, &mut keys);
        keys
    }

    /// So many steps through the sweeps under way.
    fn swept_keys(
        &mut self,
        (locks, queues): (&Locks, &Queues),
        steps: usize,
        keys: &mut Vec<Key>,
    ) {
        for _ in 0..steps {
            let Some(sweep) = self.sweeps.front_mut() else {
                return;
            };
            if let Some(key) = sweep.next_line(queues) {
                keys.push(key);
                continue;
            }
            match locks.before(sweep.db, &mut sweep.place) {
                Some((key, stamp)) if sweep.means(stamp) => keys.push(key),
                Some(_) => {}
                None if keys.is_empty() => drop(self.sweeps.pop_front()),
                // It stays until its last keys are looked at: they ask for its cause.
                None => return,
            }
        }
    }

    /// What was heard of a key is void.
    pub fn forget(&mut self, locks: &mut Locks, key: &Key) {
        self.remove(key);
        self.readers.remove(key);
        self.take_swept(locks, key);
    }

    /// What whole databases were heard of says of a key, once.
    fn take_swept(&self, locks: &mut Locks, key: &Key) -> Option<Cause> {
        if self.sweeps.is_empty() {
            return None;
        }
        // Of a key of which nothing is known an exchange says that somebody may wait for it.
        let stamp = locks.stamp(key);
        let means = |sweep: &Sweep| stamp.map_or(sweep.exchanged, |stamp| sweep.means(stamp));
        let mean_it = |sweep: &&Sweep| sweep.db == key.db && means(sweep);
        let sweeps = self.sweeps.iter().filter(mean_it);
        let cause = sweeps.map(|sweep| sweep.cause).max()?;
        locks.restamp(key);
        Some(cause)
    }

    /// Takes what was heard of a key and of readers of it, if anything was.
    pub fn take(&mut self, locks: &mut Locks, key: &Key) -> Option<(Option<Cause>, Readers)> {
        if self.has_no_key() {
            return None;
        }
        let cause = self.remove(key).max(self.take_swept(locks, key));
        let readers = self.readers.remove(key);
        let any = cause.is_some() || readers.is_some();
        any.then(|| (cause, readers.unwrap_or_default()))
    }

    /// Asserts that each key of which something was heard has its turn.
    #[cfg(test)]
    pub fn check(&self) {
        for (key, (_, number)) in &self.causes {
            assert_eq!(self.order.get(*number), Some(key), "it is never looked at");
        }
        assert_eq!(self.order.len(), self.causes.len());
        assert!(self.readers.values().all(|readers| !readers.is_empty()));
    }
}
