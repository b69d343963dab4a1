//! An index of moments: what is due, earliest first. Leases have one and renewals
//! another, by the wall clock, BLOCK time-outs a third, by the monotonic clock.
//!
//! A B-tree holds the pairs (moment, what). One that is never due stays in it, so
//! that a lock taken and released alone does not build and tear down the tree each
//! time. Whoever owns `what` remembers its moment and gives it back to move or
//! remove it, so that nothing stale stays behind: memory follows the number of locks
//! held now, not how many there were.

use std::collections::BTreeSet;
use std::ops::Bound;

#[derive(Clone, Debug)]
pub struct Deadlines<T> {
    due: BTreeSet<(i64, T)>,
}

impl<T: Ord + Clone> Deadlines<T> {
    /// An empty index; `never` stands in it as what is never due.
    pub fn new(never: T) -> Self {
        Self {
            due: BTreeSet::from([(i64::MAX, never)]),
        }
    }

    /// Moves `what` from one moment to another; `None`: it has none.
    pub fn change(&mut self, what: &T, from: Option<i64>, to: Option<i64>) {
        if from == to {
            return;
        }
        if let Some(at) = from {
            self.due.remove(&(at, what.clone()));
        }
        if let Some(at) = to {
            self.due.insert((at, what.clone()));
        }
    }

    /// Removes all that this is not true of.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.due.retain(|(at, what)| *at == i64::MAX || keep(what));
    }

    /// The earliest moment.
    pub fn first(&self) -> Option<i64> {
        let first = self.due.first().map(|(at, _)| *at);
        first.filter(|at| *at < i64::MAX)
    }

    /// Up to `most` of those whose moment is before `limit`, earliest first.
    /// They stay in the index until they are changed.
    pub fn before(&self, limit: i64, most: usize) -> Vec<T> {
        self.due
            .iter()
            .take_while(|(at, _)| *at < limit)
            .take(most)
            .map(|(_, what)| what.clone())
            .collect()
    }

    /// The same with their moments, and only those behind this pair.
    pub fn between(&self, behind: Option<&(i64, T)>, limit: i64, most: usize) -> Vec<(i64, T)> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        self.due
            .range((from, Bound::Unbounded))
            .take_while(|(at, _)| *at < limit)
            .take(most)
            .cloned()
            .collect()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.due.len().saturating_sub(1)
    }
}
