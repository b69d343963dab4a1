//! What was heard of keys since somebody last listened, to be looked into once for
//! each key.

use std::collections::HashMap;

use super::{Cause, Key};

/// What was heard of each key, taken together, in the order of first mention.
#[derive(Debug, Default)]
pub struct Heard {
    order: Vec<Key>,
    causes: HashMap<Key, Cause>,
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

    /// What was heard of the one name goes for the other; what was heard of that
    /// is void, for its key is gone.
    pub fn renamed(&mut self, from: &Key, to: &Key) {
        let cause = self.causes.remove(from).unwrap_or(Cause::Unknown);
        self.causes.remove(to);
        self.of(from.clone(), Cause::Unknown);
        self.of(to.clone(), cause);
    }

    pub fn swapped(&mut self, one: i32, other: i32) {
        let before = std::mem::take(self);
        for (key, cause) in before.keys() {
            let db = match key.db {
                db if db == one => other,
                db if db == other => one,
                db => db,
            };
            self.of(Key { db, ..key }, cause);
        }
    }

    /// Each key once.
    pub fn keys(mut self) -> impl Iterator<Item = (Key, Cause)> {
        self.order.into_iter().filter_map(move |key| {
            let cause = self.causes.remove(&key)?;
            Some((key, cause))
        })
    }
}
