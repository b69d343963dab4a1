//! An index of moments: what is due, earliest first. Leases have one and renewals
//! another, by the wall clock; BLOCK time-outs have one, and what is known of those who
//! wait by subscription, by the monotonic clock.
//!
//! A B-tree holds the pairs (moment, what). One that is never due stays in it, so
//! that a lock taken and released alone does not build and tear down the tree each
//! time. Whoever owns `what` remembers its moment and gives it back to move or
//! remove it, so that nothing stale stays behind: memory follows the number of locks
//! held now, not how many there were.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::types::Moment;

#[derive(Clone, Debug)]
pub struct Deadlines<At, T> {
    due: BTreeSet<(At, T)>,
}

impl<At: Moment, T: Ord + Default> Default for Deadlines<At, T> {
    fn default() -> Self {
        Self {
            due: BTreeSet::from([(At::NEVER, T::default())]),
        }
    }
}

impl<At: Moment, T: Ord + Clone> Deadlines<At, T> {
    /// Moves `what` from one moment to another; `None`: it has none.
    pub fn change(&mut self, what: &T, from: Option<At>, to: Option<At>) {
        if from == to {
            return;
        }
        if let Some(at) = from {
            let was = self.due.remove(&(at, what.clone()));
            debug_assert!(was, "who has a moment stands under it");
        }
        if let Some(at) = to {
            let new = self.due.insert((at, what.clone()));
            debug_assert!(new, "each stands under one moment");
        }
    }

    /// Removes all that this is not true of.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.due.retain(|(at, what)| *at == At::NEVER || keep(what));
    }

    /// The earliest moment.
    pub fn first(&self) -> Option<At> {
        let first = self.due.first().map(|(at, _)| *at);
        first.filter(|at| *at < At::NEVER)
    }

    /// Up to `most` of those that are due at `now`, earliest first. They stay in the
    /// index until they are changed.
    pub fn at(&self, now: At, most: usize) -> Vec<T> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        due.take(most).map(|(_, what)| what.clone()).collect()
    }

    /// Up to `most` of those whose moment is before `limit`, with their moments, and only
    /// those behind this pair.
    pub fn between(&self, behind: Option<&(At, T)>, limit: At, most: usize) -> Vec<(At, T)> {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let due = self.due.range((from, Bound::Unbounded));
        let due = due.take_while(|(at, _)| *at < limit);
        due.take(most).cloned().collect()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.due.len().saturating_sub(1)
    }
}
