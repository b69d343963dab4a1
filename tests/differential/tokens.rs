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

/// The tokens of one server.
#[derive(Default)]
pub struct Tokens {
    seen: HashMap<i64, Since>,
    greatest: i64,
}

impl Tokens {
    /// What a token tells that came as a reply to this step.
    pub fn take(&mut self, token: i64, step: usize) -> Result<Since, String> {
        if let Some(since) = self.seen.get(&token) {
            return Ok(*since);
        }
        if token <= self.greatest {
            return Err(format!("{token} is new, but {} was before", self.greatest));
        }
        self.greatest = token;
        self.seen.insert(token, Since(step));
        Ok(Since(step))
    }

    /// What a token tells that is shown somewhere.
    pub fn look(&self, token: i64) -> Option<Since> {
        self.seen.get(&token).copied()
    }

    /// What a number may tell: a token, and how many more it is. Tokens can follow
    /// upon one another, so there can be several answers.
    pub fn look_near(&self, number: i64) -> Vec<(Since, i64)> {
        let near = (0..=MOST_MORE).filter_map(|more| Some((number.checked_sub(more)?, more)));
        near.filter_map(|(token, more)| Some((self.look(token)?, more)))
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
