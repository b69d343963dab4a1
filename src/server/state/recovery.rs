//! How far the recovery scan is: it looks for hashes that could be locks, database by
//! database, in short slices with long rests between them (`inbound::recovery`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::lock::{Forgetting, Key};
use crate::server::sys::{MachineUs, Scan};

/// After a slice it rests for so many times as long: a twentieth of a core.
const REST: i64 = 19;

/// No more keys are remembered that were renamed or moved. Where there were more all is
/// walked once more, at most so often: nobody else may be stuck for it.
const MOST_ARRIVED: usize = 4096;
const ROUNDS: u8 = 2;

#[derive(Default)]
pub struct RecoveryScan {
    task: RefCell<Option<Task>>,
    /// Not before this moment.
    rests_until: Cell<Option<MachineUs>>,
    /// So many keys were looked at by the last walk, or are by now.
    pub scanned: Cell<u64>,
}

pub enum Task {
    Walk(DatabaseWalk),
    /// What is presumed is forgotten.
    Forget(Forgetting),
}

/// A walk through all databases. The cell is not borrowed while the server is called, for
/// that can bring events: the task is taken out for a slice.
#[derive(Default)]
pub struct DatabaseWalk {
    /// The database that is walked, and how far.
    pub current: Option<(i32, Scan)>,
    dbs: Dbs,
    /// Keys that were renamed or moved: they can have gone where the walk has been.
    pub arrived: Vec<Key>,
    /// These were too many.
    missed: bool,
    /// So often it has begun anew for that.
    rounds: u8,
}

impl DatabaseWalk {
    /// The next database to be walked.
    pub fn next_db(&mut self) -> i32 {
        self.dbs.next()
    }

    /// All databases are walked. Whether it goes on, with all of them again.
    pub fn goes_round(&mut self) -> bool {
        let again = self.missed && self.rounds < ROUNDS;
        if again {
            self.dbs = Dbs::default();
            self.missed = false;
            self.rounds = self.rounds.saturating_add(1);
        }
        again
    }
}

/// Which databases are yet to be walked, without the one that is under way.
#[derive(Debug, Default)]
struct Dbs {
    /// All from here on,
    next: i32,
    /// but not these, and these before it: they have changed places by SWAPDB.
    others: BTreeSet<i32>,
}

impl Dbs {
    fn next(&mut self) -> i32 {
        if self.others.first().is_some_and(|db| *db < self.next) {
            return self.others.pop_first().unwrap_or(self.next);
        }
        while self.others.remove(&self.next) {
            self.next = self.next.saturating_add(1);
        }
        let next = self.next;
        self.next = next.saturating_add(1);
        next
    }

    fn is_due(&self, db: i32) -> bool {
        (db >= self.next) != self.others.contains(&db)
    }

    fn swapped(&mut self, one: i32, other: i32) {
        let was_due = [(one, other), (other, one)].map(|(from, to)| (self.is_due(from), to));
        for (was_due, to) in was_due {
            if was_due == (to >= self.next) {
                self.others.remove(&to);
            } else {
                self.others.insert(to);
            }
        }
    }
}

impl RecoveryScan {
    /// Begins anew, whatever is under way.
    pub fn begin(&self) {
        self.scanned.set(0);
        self.put(Task::Walk(DatabaseWalk::default()));
    }

    pub fn end(&self) {
        self.task.replace(None);
    }

    /// This is to be done, and nothing else.
    pub fn put(&self, task: Task) {
        self.task.replace(Some(task));
    }

    /// Takes out what is to be done, for a slice of it.
    pub fn take(&self) -> Option<Task> {
        self.task.take()
    }

    pub fn is_walking(&self) -> bool {
        matches!(*self.task.borrow(), Some(Task::Walk(_)))
    }

    /// In how many ms the next slice is due, if there is anything to do.
    pub fn next_ms(&self) -> Option<i64> {
        self.task.borrow().as_ref()?;
        let until = self.rests_until.get();
        let us = until.map_or(0, |until| until.since(MachineUs::now()));
        Some(us.max(0).saturating_add(999) / 1000)
    }

    /// A slice went on since then.
    pub fn rest(&self, start: MachineUs, now: MachineUs) {
        let us = now.since(start).max(0).saturating_mul(REST);
        self.rests_until
            .set(Some(MachineUs(now.0.saturating_add(us))));
    }

    /// A key goes by this name now.
    pub fn arrived(&self, key: impl FnOnce() -> Key) {
        if let Some(Task::Walk(walk)) = self.task.borrow_mut().as_mut() {
            if walk.arrived.len() < MOST_ARRIVED {
                walk.arrived.push(key());
            } else {
                walk.missed = true;
            }
        }
    }

    /// Two databases were exchanged.
    pub fn swapped(&self, one: i32, other: i32) {
        if let Some(Task::Walk(walk)) = self.task.borrow_mut().as_mut() {
            walk.dbs.swapped(one, other);
            if let Some((db, _)) = &mut walk.current {
                *db = crate::lock::exchanged(*db, one, other);
            }
            for key in &mut walk.arrived {
                key.db = crate::lock::exchanged(key.db, one, other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All databases with what is in them are walked, whenever they are exchanged.
    #[test]
    fn an_exchange_leaves_none_out() {
        const DBS: usize = 5;
        for (when, one, other) in (0..DBS * DBS * DBS).map(|n| (n % 5, n / 5 % 5, n / 25)) {
            let mut content: Vec<usize> = (0..DBS).collect();
            let mut dbs = Dbs::default();
            let mut seen = BTreeSet::new();
            for step in 0.. {
                if step == when {
                    content.swap(one, other);
                    dbs.swapped(one as i32, other as i32);
                }
                match content.get(dbs.next() as usize) {
                    Some(found) => assert!(seen.insert(*found), "{found} is walked twice"),
                    None => break,
                };
            }
            assert_eq!(seen.len(), DBS, "{one} and {other} at {when}");
        }
    }
}
