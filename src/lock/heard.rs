//! What was heard of keys since somebody last listened, to be looked into once for
//! each key.

use std::collections::HashMap;

use super::{Bytes, Cause, Key};

/// What was heard of each key, taken together, in the order of first mention.
#[derive(Debug, Default)]
pub struct Heard {
    order: Vec<Key>,
    causes: HashMap<Key, Cause>,
    /// Of readers, by their lease keys.
    readers: HashMap<(Key, Bytes), Cause>,
}

impl Heard {
    pub fn of(&mut self, key: Key, cause: Cause) {
        match self.causes.get_mut(&key) {
            Some(heard) => *heard = cause.max(*heard),
            None => {
                self.order.push(key.clone());
                self.causes.insert(key, cause);
            }
        }
    }

    pub fn of_reader(&mut self, key: Key, owner: Bytes, cause: Cause) {
        let heard = self.readers.entry((key, owner)).or_insert(cause);
        *heard = cause.max(*heard);
    }

    /// What was heard of the one name goes for the other; what was heard of that
    /// is void, for its key is gone.
    pub fn renamed(&mut self, from: &Key, to: &Key) {
        let cause = self.causes.remove(from).unwrap_or(Cause::Unknown);
        self.causes.remove(to);
        self.of(from.clone(), Cause::Unknown);
        self.of(to.clone(), cause);
    }

    pub fn swapped(&mut self, one: i32, other: i32) {
        let before = Self {
            readers: HashMap::new(),
            ..std::mem::take(self)
        };
        for (key, _, cause) in before.all() {
            let db = match key.db {
                db if db == one => other,
                db if db == other => one,
                db => db,
            };
            self.of(Key { db, ..key }, cause);
        }
    }

    /// Each key once, in order, then each reader once: whoever is written anew with
    /// its lock is not held to be gone.
    pub fn all(mut self) -> Vec<(Key, Option<Bytes>, Cause)> {
        let causes = &mut self.causes;
        let keys = self.order.into_iter().filter_map(|key| {
            let cause = causes.remove(&key)?;
            Some((key, None, cause))
        });
        let mut readers: Vec<_> = self.readers.into_iter().collect();
        readers.sort();
        let readers = readers.into_iter();
        keys.chain(readers.map(|((key, owner), cause)| (key, Some(owner), cause)))
            .collect()
    }
}
