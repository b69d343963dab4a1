//! What was heard of keys and connections and is to be looked at yet.
//!
//! Notes are read in two parts. First all of them are heard: what has moved is
//! moved, and of each key remains what weighs most. Then the keys are looked at, some
//! at a time where there are very many ([`Core::review`]). A note is older than
//! anything that is done because of it, so whatever has ended is ended before any
//! lock is handed on, as far as it is looked at in one go. Until a key's time comes it
//! is as if nothing had been heard; only whoever looks at the key itself finds what
//! was heard of it taken into account ([`Core::attend`]).

use super::{closed, leaving, moved, reconcile, take_back};
use std::collections::{BTreeMap, HashMap, VecDeque};

use super::table::Place;
use super::{Cause, ClientId, Core, Decision, Key, Owner, WaiterId};

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
    /// A connection is closed that has watchdog holds.
    Closed(ClientId),
    /// The reply of this grant will never reach its client.
    Lost(WaiterId),
}

/// What was heard of the lease keys of a lock's readers.
pub type Readers = BTreeMap<Owner, Cause>;

/// What was heard of each key, taken together, in the order of first mention.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Some of them may have been attended to since.
    order: VecDeque<Key>,
    causes: HashMap<Key, Cause>,
    /// Of readers, by their lease keys.
    readers: BTreeMap<Key, Readers>,
    /// Of whole databases.
    sweeps: VecDeque<Sweep>,
    /// Connections that are closed.
    closed: VecDeque<ClientId>,
    /// Grants whose reply is lost.
    lost: Vec<WaiterId>,
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
}

impl Heard {
    pub fn of(&mut self, key: Key, cause: Cause) {
        match self.causes.get_mut(&key) {
            Some(heard) => *heard = cause.max(*heard),
            None => {
                self.order.push_back(key.clone());
                self.causes.insert(key, cause);
            }
        }
    }

    fn of_reader(&mut self, key: Key, owner: Owner, cause: Cause) {
        let readers = self.readers.entry(key).or_default();
        let heard = readers.entry(owner).or_insert(cause);
        *heard = cause.max(*heard);
    }

    /// What was heard of the one name goes for the other; what was heard of that
    /// is void, for its key is gone.
    fn renamed(&mut self, from: &Key, to: &Key, swept: Option<Cause>) {
        let cause = self.causes.remove(from).max(swept);
        self.causes.remove(to);
        self.of(from.clone(), Cause::Unknown);
        self.of(to.clone(), cause.unwrap_or(Cause::Unknown));
    }

    fn swapped(&mut self, one: i32, other: i32) {
        let swap = |db| match db {
            db if db == one => other,
            db if db == other => one,
            db => db,
        };
        for sweep in &mut self.sweeps {
            sweep.db = swap(sweep.db);
        }
        let order = std::mem::take(&mut self.order);
        let mut causes = std::mem::take(&mut self.causes);
        self.readers.clear();
        for key in order {
            if let Some(cause) = causes.remove(&key) {
                let db = swap(key.db);
                self.of(Key { db, ..key }, cause);
            }
        }
    }

    fn sweep(&mut self, db: i32, cause: Cause, stamp: u32) {
        self.sweeps.push_back(Sweep {
            db,
            cause,
            stamp,
            place: Place::END,
        });
    }

    /// What sweeps say of a key of this database whose entry has this stamp.
    fn swept(&self, db: i32, stamp: u32) -> Option<Cause> {
        let older = |sweep: &&Sweep| sweep.db == db && sweep.stamp.wrapping_sub(stamp) as i32 > 0;
        let sweeps = self.sweeps.iter().filter(older);
        sweeps.map(|sweep| sweep.cause).max()
    }

    /// Nothing is to be looked at.
    pub fn is_empty(&self) -> bool {
        self.has_no_key() && self.closed.is_empty() && self.lost.is_empty()
    }

    fn has_no_key(&self) -> bool {
        self.causes.is_empty() && self.readers.is_empty() && self.sweeps.is_empty()
    }

    /// Of whatever database or key: nothing is to be looked at any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Core {
    /// All keys of a database of which anything is known, or of all databases, are to
    /// be looked at.
    fn begin_sweep(&mut self, db: Option<i32>, cause: Cause) {
        let known = self.locks.databases();
        let meant: Vec<i32> = known
            .filter(|known| db.is_none_or(|db| db == *known))
            .collect();
        for db in meant {
            self.heard.sweep(db, cause, self.locks.begin_sweep());
        }
    }

    /// Whether something that was heard, or that a request has left behind outside a
    /// decision, is to be looked at: a [`Core::review`] is due.
    pub fn is_unsettled(&self) -> bool {
        !self.heard.is_empty() || !self.due.is_empty()
    }

    /// The next keys that are to be looked at, at most so many of each kind: those of
    /// which something was heard, those of readers, those of whole databases.
    pub fn heard_of(&mut self, most: usize) -> Vec<Key> {
        let heard = &mut self.heard;
        let mut keys = Vec::new();
        while let Some(key) = heard.order.pop_front() {
            if heard.causes.contains_key(&key) {
                keys.push(key);
            }
            if keys.len() >= most {
                break;
            }
        }
        if heard.order.is_empty() {
            keys.extend(heard.readers.keys().take(most).cloned());
        }
        let room = most.saturating_sub(keys.len());
        self.swept_keys(room, &mut keys);
        keys
    }

    /// Steps through the sweeps under way.
    fn swept_keys(&mut self, most: usize, keys: &mut Vec<Key>) {
        let mut steps = most;
        while let Some(sweep) = self.heard.sweeps.front_mut() {
            let (db, stamp) = (sweep.db, sweep.stamp);
            let locks = &self.locks;
            let mut next = || locks.before(db, &mut sweep.place);
            let mut is_over = false;
            while steps > 0 && !is_over {
                steps = steps.saturating_sub(1);
                let found = next();
                is_over = found.is_none();
                let meant = found.filter(|(_, of)| stamp.wrapping_sub(*of) as i32 > 0);
                keys.extend(meant.map(|(key, _)| key));
            }
            if !is_over {
                return;
            }
            // The sweep stays until its last keys are looked at: they ask for its cause.
            if !keys.is_empty() {
                return;
            }
            self.heard.sweeps.pop_front();
        }
    }

    /// What was heard of a key that is not this server's for now is void, and so is what
    /// was left to be settled on it.
    pub fn unheard(&mut self, key: &Key) {
        self.heard.causes.remove(key);
        self.heard.readers.remove(key);
        self.take_swept(key);
        self.due.forget(key);
    }

    /// What whole databases were heard of says of a key, once.
    fn take_swept(&mut self, key: &Key) -> Option<Cause> {
        if self.heard.sweeps.is_empty() {
            return None;
        }
        let stamp = self.locks.stamp_of(key)?;
        let cause = self.heard.swept(key.db, stamp)?;
        self.locks.restamp(key);
        Some(cause)
    }

    /// Takes what was heard of a key and of readers of it, if anything was.
    pub(super) fn take_heard(&mut self, key: &Key) -> Option<(Option<Cause>, Readers)> {
        if self.heard.has_no_key() {
            return None;
        }
        let cause = self.heard.causes.remove(key).max(self.take_swept(key));
        let readers = self.heard.readers.remove(key);
        let any = cause.is_some() || readers.is_some();
        any.then(|| (cause, readers.unwrap_or_default()))
    }

    /// The connections that are closed and whose holds are to be ended, with the next
    /// of those holds.
    pub fn closed_bonds(&self, most: usize) -> Vec<Key> {
        let clients = self.heard.closed.iter();
        let bonds = clients.flat_map(|client| self.watchdogs.of_client(*client));
        bonds.take(most).map(|(key, _)| key.clone()).collect()
    }
}

/// Takes in what was noted, in order. What has moved is known under its new name
/// from then on; the rest is due for a [`Core::review`].
pub fn hear(d: &mut Decision<'_>, notes: impl IntoIterator<Item = Note>) {
    for note in notes {
        match note {
            Note::Changed(key, cause) => d.core.heard.of(key, cause),
            Note::Reader(key, owner, cause) => d.core.heard.of_reader(key, owner, cause),
            Note::Renamed(from, to) => {
                let swept = d.core.take_swept(&from);
                d.core.heard.renamed(&from, &to, swept);
                moved::renamed(d, &from, &to);
            }
            Note::Swapped(one, other) => {
                d.core.heard.swapped(one, other);
                moved::swapped(d, one, other);
                for db in [one, other] {
                    d.core.begin_sweep(Some(db), Cause::Unknown);
                }
            }
            Note::Replaced(db, cause) => d.core.begin_sweep(db, cause),
            Note::Closed(client) => {
                leaving::stop_waiting(d.core, &mut d.work, client);
                d.core.heard.closed.push_back(client);
            }
            Note::Lost(waiter) => d.core.heard.lost.push(waiter),
        }
    }
}

/// Looks at these keys, and when nothing else was heard of any key at connections
/// that are closed, at most at so many of their holds, and at lost grants. Then
/// hands on what has become free.
pub fn review(d: &mut Decision<'_>, keys: &[Key], most: usize) {
    d.work.append(std::mem::take(&mut d.core.due));
    for key in keys {
        reconcile::attend(d, key);
    }
    // A sweep goes on meanwhile: it is about older things, and is asked of each key.
    if d.core.heard.causes.is_empty() && d.core.heard.readers.is_empty() {
        let mut left = most;
        while let Some(client) = d.core.heard.closed.front().copied() {
            left = left.saturating_sub(closed::closed(d, client, left));
            if d.core.watchdogs.has(client) {
                break;
            }
            d.core.heard.closed.pop_front();
        }
        for waiter in std::mem::take(&mut d.core.heard.lost) {
            take_back::take_back(d, waiter);
        }
    }
}
