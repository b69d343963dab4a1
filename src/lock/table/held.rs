//! How many locks of a database are held, and since when.

use super::hold::Hold;
use crate::lock::moments::Moments;
use crate::lock::WallUs;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Locks that somebody is known to hold.
    pub locks: usize,
    /// Since when each owner holds each of them, where that is known.
    since: Moments,
}

impl Held {
    /// A lock was held, and is held now, or not.
    pub fn lock(&mut self, was: bool, is: bool) {
        match (was, is) {
            (false, true) => self.locks = self.locks.saturating_add(1),
            (true, false) => self.locks = self.locks.saturating_sub(1),
            _ => {}
        }
    }

    /// A hold begins.
    pub fn begins(&mut self, since: Option<WallUs>) {
        if let Some(since) = since {
            self.since.add(since.ms());
        }
    }

    /// One ends.
    pub fn ends(&mut self, since: Option<WallUs>) {
        if let Some(since) = since {
            self.since.remove(since.ms());
        }
    }

    pub fn all_end<'a>(&mut self, holds: impl Iterator<Item = &'a Hold>) {
        holds.for_each(|hold| self.ends(hold.since()));
    }

    /// Since when the oldest of them is held, ms.
    pub fn first(&self) -> Option<i64> {
        self.since.first()
    }
}
