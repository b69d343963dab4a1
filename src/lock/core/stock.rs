//! Taking stock: hashes that could be locks, found by the shell after a load, a promotion,
//! or when the module was loaded. An application's hash can look the same, so no more is
//! taken of one than when it ends: it is looked at then. No event, counter or gauge speaks
//! of it before a request has come to it; to requests it is as unknown as it was. Nothing
//! looks like a lock with permits but one: its holders are read, and known.

use super::Core;
use crate::lock::kind::presumption;
use crate::lock::pools::Seen;
use crate::lock::table::Place;
use crate::lock::{Key, Look, Now};

/// What is presumed is forgotten, some of it at a time.
#[derive(Debug)]
pub struct Forgetting {
    /// The databases that are left.
    dbs: Vec<i32>,
    place: Place,
}

impl Core {
    /// A hash was found that nobody has asked for. Whether it is presumed to be a lock now.
    pub fn presume(&mut self, now: Now, key: &Key, look: &Look) -> bool {
        let is_unknown = self.locks.get(key).is_none();
        if let Some(pool) = look.pool().filter(|_| is_unknown) {
            self.pools.begin(key, Seen::Out(pool));
            return true;
        }
        let found = presumption(look).filter(|(_, at)| *at >= now.wall_ms());
        if found.is_none() || !is_unknown {
            return false;
        }
        self.locks.set_presumed(key, found);
        true
    }

    /// How many locks are presumed.
    pub fn presumed(&self) -> usize {
        self.locks.presumed()
    }

    /// Nothing is to be presumed any more.
    pub fn begin_to_forget(&self) -> Forgetting {
        Forgetting {
            dbs: self.locks.databases(),
            place: Place::END,
        }
    }

    /// So many steps of that; whether any are left.
    pub fn forget_presumed(&mut self, at: &mut Forgetting, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(db) = at.dbs.last() else {
                return false;
            };
            match self.locks.before(*db, &mut at.place) {
                Some((key, _)) => self.locks.set_presumed(&key, None),
                None => {
                    at.dbs.pop();
                    at.place = Place::END;
                }
            }
        }
        true
    }
}
