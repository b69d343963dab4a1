//! What was heard of keys and connections since somebody last listened.
//!
//! Notes are read in two parts. First all of them are heard: what has moved is
//! moved, and of each key remains what weighs most. Then all keys are looked at
//! ([`Core::review`]). A note is older than anything that is done because of it, so
//! whatever has ended is ended before any lock is handed on: nobody waits any more
//! for a hold that is in none of the keys.

use std::collections::HashMap;

use super::{Bytes, Cause, Core, Key, Keyspace, Step, WaiterId};

/// One thing to attend to, in the order in which it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The key may have changed.
    Changed(Key, Cause),
    /// A lease key of this reader of the lock may have changed.
    Reader(Key, Bytes, Cause),
    /// The first key is the second one now.
    Renamed(Key, Key),
    /// Two databases were exchanged.
    Swapped(i32, i32),
    /// A database was emptied, or all were emptied or loaded anew.
    Replaced(Option<i32>, Cause),
    /// A connection is closed that has watchdog holds.
    Closed(u64),
    /// The reply of this grant will never reach its client.
    Lost(WaiterId),
}

/// What was heard of each key, taken together, in the order of first mention.
#[derive(Debug, Default)]
pub struct Heard {
    order: Vec<Key>,
    causes: HashMap<Key, Cause>,
    /// Of readers, by their lease keys.
    readers: HashMap<(Key, Bytes), Cause>,
    /// Connections that are closed.
    pub closed: Vec<u64>,
    /// Grants whose reply is lost.
    lost: Vec<WaiterId>,
}

impl Heard {
    fn of(&mut self, key: Key, cause: Cause) {
        match self.causes.get_mut(&key) {
            Some(heard) => *heard = cause.max(*heard),
            None => {
                self.order.push(key.clone());
                self.causes.insert(key, cause);
            }
        }
    }

    fn of_reader(&mut self, key: Key, owner: Bytes, cause: Cause) {
        let heard = self.readers.entry((key, owner)).or_insert(cause);
        *heard = cause.max(*heard);
    }

    /// What was heard of the one name goes for the other; what was heard of that
    /// is void, for its key is gone.
    fn renamed(&mut self, from: &Key, to: &Key) {
        let cause = self.causes.remove(from).unwrap_or(Cause::Unknown);
        self.causes.remove(to);
        self.of(from.clone(), Cause::Unknown);
        self.of(to.clone(), cause);
    }

    fn swapped(&mut self, one: i32, other: i32) {
        let order = std::mem::take(&mut self.order);
        let mut causes = std::mem::take(&mut self.causes);
        self.readers.clear();
        for key in order {
            let Some(cause) = causes.remove(&key) else {
                continue;
            };
            let db = match key.db {
                db if db == one => other,
                db if db == other => one,
                db => db,
            };
            self.of(Key { db, ..key }, cause);
        }
    }

    /// The keys that are to be looked at.
    pub fn keys(&self) -> Vec<Key> {
        let readers = self.readers.keys().map(|(key, _)| key);
        let mut keys: Vec<Key> = self.causes.keys().chain(readers).cloned().collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Leaves out a key.
    pub fn without(&mut self, key: &Key) {
        self.causes.remove(key);
        self.readers.retain(|(of, _), _| of != key);
    }

    /// Each key once, in order, then each reader once: whoever is written anew with
    /// its lock is not held to be gone.
    fn looks(&mut self) -> Vec<(Key, Option<Bytes>, Cause)> {
        let causes = &mut self.causes;
        let keys = self.order.drain(..).filter_map(|key| {
            let cause = causes.remove(&key)?;
            Some((key, None, cause))
        });
        let mut readers: Vec<_> = self.readers.drain().collect();
        readers.sort();
        let readers = readers.into_iter();
        keys.chain(readers.map(|((key, owner), cause)| (key, Some(owner), cause)))
            .collect()
    }
}

impl Core {
    /// Takes in what was noted, in order. What has moved is known under its new name
    /// from then on; the rest is due for a [`Core::review`].
    pub fn hear<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        notes: impl IntoIterator<Item = Note>,
    ) -> Heard {
        let mut heard = Heard::default();
        for note in notes {
            match note {
                Note::Changed(key, cause) => heard.of(key, cause),
                Note::Reader(key, owner, cause) => heard.of_reader(key, owner, cause),
                Note::Renamed(from, to) => {
                    heard.renamed(&from, &to);
                    self.renamed(step, &from, &to);
                }
                Note::Swapped(one, other) => {
                    heard.swapped(one, other);
                    self.swapped(step, one, other);
                    for db in [one, other] {
                        self.hear_of_all(&mut heard, Some(db), Cause::Unknown);
                    }
                }
                Note::Replaced(db, cause) => self.hear_of_all(&mut heard, db, cause),
                Note::Closed(client) => heard.closed.push(client),
                Note::Lost(waiter) => heard.lost.push(waiter),
            }
        }
        for key in std::mem::take(&mut self.unsettled) {
            heard.of(key, Cause::Unknown);
        }
        heard
    }

    fn hear_of_all(&self, heard: &mut Heard, db: Option<i32>, cause: Cause) {
        for key in self.keys(db) {
            heard.of(key, cause);
        }
    }

    /// Looks at all that something was heard of, and then hands on what has become
    /// free.
    pub fn review<K: Keyspace>(&mut self, step: &mut Step<'_, K>, mut heard: Heard) {
        for (key, owner, cause) in heard.looks() {
            match owner {
                None => self.review_key(step, &key, cause),
                Some(owner) => self.review_reader(step, &key, &owner, cause),
            }
        }
        for client in heard.closed {
            self.closed(step, client);
        }
        for waiter in heard.lost {
            self.take_back(step, waiter);
        }
        self.settle_pending(step);
    }
}
