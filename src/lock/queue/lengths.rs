//! Which queues are the longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::line::Line;
use crate::lock::{Key, WaiterId};

/// Of so many queues, or fewer, it is found out when it is asked: a hand-over costs no more by it.
const FEW: usize = 64;

/// How many wait, who is first, and for which key.
type Length = (Reverse<usize>, WaiterId, Key);

/// In order, and of those that are as long the one whose first came first; of none where there
/// are few.
#[derive(Clone, Debug, Default)]
pub struct Lengths(BTreeSet<Length>);

fn length(key: &Key, line: &Line) -> Option<Length> {
    let (_, first) = line.first()?;
    Some((Reverse(line.queue.len()), first, key.clone()))
}

fn all(lines: &BTreeMap<Key, Line>) -> BTreeSet<Length> {
    let lengths = lines.iter().map(|(key, line)| length(key, line));
    lengths.flatten().collect()
}

impl Lengths {
    /// Before a queue changes.
    pub fn was(&mut self, key: &Key, line: &Line) {
        if !self.0.is_empty() {
            length(key, line).map(|was| self.0.remove(&was));
        }
    }

    /// After that.
    pub fn is(&mut self, key: &Key, line: &Line) {
        if !self.0.is_empty() {
            self.0.extend(length(key, line));
        }
    }

    /// There are so many queues from now on.
    pub fn are(&mut self, lines: &BTreeMap<Key, Line>) {
        if self.0.is_empty() && lines.len() > FEW {
            self.0 = all(lines);
        } else if lines.len() < FEW / 2 {
            self.0.clear();
        }
    }

    /// The longest, so many.
    pub fn first(&self, lines: &BTreeMap<Key, Line>, most: usize) -> Vec<Key> {
        let found = if self.0.is_empty() {
            all(lines)
        } else {
            BTreeSet::new()
        };
        let lengths = self.0.iter().chain(&found).take(most);
        lengths.map(|(_, _, key)| key.clone()).collect()
    }

    /// Asserts that they are those of the queues.
    #[cfg(test)]
    pub fn check(&self, lines: &BTreeMap<Key, Line>) {
        assert!(self.0.is_empty() || self.0 == all(lines));
        assert!(lines.len() <= FEW || !self.0.is_empty());
    }
}
