//! Locks that have ended with very many holders: what follows for each of these is done some
//! at a time. The lock itself is over at once, and may be another's by now.

use super::hold::Hold;
use super::shared::Shared;
use crate::lock::fifo::Fifo;
use crate::lock::key::exchanged;
use crate::lock::{Cause, ClientId, Key, Now, Reason, WallMs};

/// How the holds have ended.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    /// By this, found then.
    Found(Cause, Now),
    /// They are lost for this reason, and no event tells of it.
    Lost(Reason),
    /// By FORCE, and of this connection.
    Forced(Option<ClientId>),
}

/// Of one lock.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    key: Key,
    /// In which database its lease keys lie now, and since when holds were is known.
    db: i32,
    shared: Box<Shared>,
    why: Why,
    /// The lease keys of readers go too.
    leases: bool,
}

impl Ending {
    pub fn new(key: &Key, shared: Box<Shared>, (why, leases): (Why, bool)) -> Self {
        Self {
            key: key.clone(),
            db: key.db,
            shared,
            why,
            leases,
        }
    }

    /// Whether this is what it was called, or where its lease keys lie.
    fn is_of(&self, key: &Key) -> bool {
        self.key.name == key.name && (self.key.db == key.db || self.db == key.db)
    }

    fn ended(&self, hold: Hold) -> Ended {
        Ended {
            key: self.key.clone(),
            db: self.db,
            end: hold.end(self.shared.expires),
            why: self.why,
            leases: self.leases && hold.reads,
            hold,
        }
    }
}

/// One of its holders.
#[derive(Debug)]
pub struct Ended {
    /// As its holders know it.
    pub key: Key,
    /// In which database its lease keys lie.
    pub db: i32,
    pub hold: Hold,
    /// When its holds would have ended.
    pub end: Option<WallMs>,
    pub why: Why,
    /// Its lease keys go too.
    pub leases: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Endings(Fifo<Ending>);

impl Endings {
    pub fn put(&mut self, ending: Ending) {
        self.0.push_back(ending);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something is to be written for the next one.
    pub fn writes(&self) -> bool {
        self.0.front().is_some_and(|ending| ending.leases)
    }

    /// The next one.
    pub fn next(&mut self) -> Option<Ended> {
        loop {
            let ending = self.0.front_mut()?;
            if let Some(hold) = ending.shared.pop() {
                return Some(ending.ended(hold));
            }
            self.0.pop_front();
        }
    }

    /// This one, if it is among them.
    pub fn take(&mut self, key: &Key, owner: &[u8]) -> Option<Ended> {
        let mut of_key = self.0.iter_mut().filter(|ending| ending.is_of(key));
        of_key.find_map(|ending| {
            let hold = ending.shared.take(owner)?;
            Some(ending.ended(hold))
        })
    }

    /// Two databases were exchanged, and what lies in them.
    pub fn swap(&mut self, one: i32, other: i32) {
        for ending in self.0.iter_mut() {
            ending.db = exchanged(ending.db, one, other);
        }
    }

    /// All that are left: what each was called, the database that it counts for, and its hold.
    #[cfg(test)]
    pub fn holds(&self) -> impl Iterator<Item = (&Key, i32, &Hold)> {
        self.0.iter().flat_map(|ending| {
            ending.shared.check_ending();
            let holds = ending.shared.holds();
            holds.map(|hold| (&ending.key, ending.db, hold))
        })
    }

    /// Nothing is to be written for them any more.
    pub fn write_nothing(&mut self) {
        for ending in self.0.iter_mut() {
            ending.leases = false;
        }
    }
}
