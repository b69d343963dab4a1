//! Tokens of two servers are never equal, what they tell is: a token that was given
//! before, and when, or one that is greater than all before.

use std::collections::{HashMap, HashSet};

use super::snapshot::tagged;
use super::step::Bytes;

/// When a token was first seen, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since(pub usize);

/// How often somebody raises a counter in one sequence, at the most.
const MOST_MORE: i64 = 60;

/// Beyond the clock: a counter that somebody has set has lifted it.
const AHEAD: i64 = 4_000_000_000_000_000;

/// The tokens of one server. Those that are lifted are each lock's own: two locks can have
/// the same.
#[derive(Default)]
pub struct Tokens {
    seen: HashMap<(Bytes, i64), Since>,
    /// By the clock, and of each lock.
    greatest: HashMap<Bytes, i64>,
}

/// Among which tokens this one of a lock is the only one of its number.
fn row(lock: &[u8], token: i64) -> Bytes {
    match token < AHEAD {
        true => Vec::new(),
        false => tagged(lock),
    }
}

impl Tokens {
    /// What a token tells that came as a reply to this step, for holds of these locks.
    pub fn take(&mut self, token: i64, locks: &[Bytes], step: usize) -> Result<Since, String> {
        let known = locks.iter().filter_map(|lock| self.look(lock, token));
        let since = known.min_by_key(|since| since.0).unwrap_or(Since(step));
        for lock in locks {
            let row = row(lock, token);
            if self.seen.contains_key(&(row.clone(), token)) {
                continue;
            }
            let greatest = self.greatest.entry(row.clone()).or_default();
            if since.0 == step && token <= *greatest {
                return Err(format!("{token} is new, but {greatest} was before"));
            }
            *greatest = token.max(*greatest);
            self.seen.insert((row, token), since);
        }
        Ok(since)
    }

    /// What a token tells that is shown somewhere, of this lock.
    pub fn look(&self, lock: &[u8], token: i64) -> Option<Since> {
        self.seen.get(&(row(lock, token), token)).copied()
    }

    /// What a number may tell: a token, and how many more it is. Tokens can follow
    /// upon one another, so there can be several answers.
    pub fn look_near(&self, lock: &[u8], number: i64) -> Vec<(Since, i64)> {
        let near = (0..=MOST_MORE).filter_map(|more| Some((number.checked_sub(more)?, more)));
        near.filter_map(|(token, more)| Some((self.look(lock, token)?, more)))
            .collect()
    }
}

/// Which holds both servers know the token of. Somebody who changes a key behind
/// rlock's back leaves it open whether a server still takes the hold for the one it
/// knew, so either may give a new token then; from that on both know it again.
#[derive(Default)]
pub struct Known {
    changed: HashSet<Bytes>,
    again: HashSet<(Bytes, Bytes)>,
}

impl Known {
    /// Somebody may have changed the lock.
    pub fn change(&mut self, lock: &Bytes) {
        self.changed.insert(lock.clone());
        self.again.retain(|(key, _)| key != lock);
    }

    /// Whether somebody has changed the lock of this name, which is in braces.
    pub fn may_differ(&self, name: &[u8]) -> bool {
        self.changed.iter().any(|lock| tagged(lock) == name)
    }

    /// Both gave this owner a new token.
    pub fn learn(&mut self, lock: &Bytes, owner: &Bytes) {
        self.again.insert((lock.clone(), owner.clone()));
    }

    pub fn has(&self, lock: &Bytes, owner: &Bytes) -> bool {
        !self.changed.contains(lock) || self.again.contains(&(lock.clone(), owner.clone()))
    }
}
