//! Requests that are to be refused, some at a time: their keys are another server's, or this
//! one is no master any more.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use super::line::Line;
use super::portion::Portion;
use super::rank::Rank;
use super::waiter::Waiter;
use crate::lock::{Key, Refusal, WaiterId};

/// Those who are queued for a key.
#[derive(Clone, Debug)]
struct SentOn {
    why: Refusal,
    /// With a smaller number than this one.
    before: WaiterId,
    /// Up to this place they were gone over.
    behind: Option<Rank>,
}

impl SentOn {
    /// The next of them, and whether these were the last.
    fn take(
        &mut self,
        waiters: &BTreeMap<WaiterId, Box<Waiter>>,
        line: Option<&Line>,
        mut portion: Portion,
    ) -> (Vec<(WaiterId, Refusal)>, bool) {
        let mut next = Vec::new();
        let behind = self.behind.take();
        let from = behind.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let line = line.map(|line| line.queue.range((from, Bound::Unbounded)));
        for (rank, id) in line.into_iter().flatten() {
            let waiter = waiters.get(&id);
            portion.takes(waiter.map_or(1, |waiter| waiter.keys.len()));
            if id < self.before && waiter.is_some_and(|waiter| waiter.queued) {
                next.push((id, self.why.clone()));
            }
            if portion.is_over() {
                self.behind = Some(rank.clone());
                return (next, false);
            }
        }
        (next, true)
    }
}

#[derive(Clone, Debug, Default)]
pub struct SentAway {
    /// Each once, however often it is heard.
    some: BTreeMap<WaiterId, Refusal>,
    /// All that are queued for these keys,
    lines: BTreeMap<Key, SentOn>,
    /// and all that are queued, of these numbers.
    all: Range<WaiterId>,
}

impl SentAway {
    pub fn add(&mut self, some: impl IntoIterator<Item = (WaiterId, Refusal)>) {
        self.some.extend(some);
    }

    /// All with a smaller number than this one.
    pub fn add_all(&mut self, before: WaiterId) {
        self.all = WaiterId::FIRST..before;
    }

    /// All that are queued for a key with a smaller number than this one.
    pub fn add_line(&mut self, key: &Key, why: &Refusal, before: WaiterId) {
        let new = || SentOn {
            why: why.clone(),
            before,
            behind: None,
        };
        self.lines.entry(key.clone()).or_insert_with(new).before = before;
    }

    #[cfg(test)]
    pub fn listed(&self) -> usize {
        self.some.len()
    }

    /// It is gone before that.
    pub fn remove(&mut self, id: WaiterId) {
        self.some.remove(&id);
    }

    pub fn is_empty(&self) -> bool {
        self.some.is_empty() && self.lines.is_empty() && self.all.is_empty()
    }

    /// The next of those that wait still, with so many keys.
    pub fn take(
        &mut self,
        (waiters, lines): (&BTreeMap<WaiterId, Box<Waiter>>, &BTreeMap<Key, Line>),
        mut portion: Portion,
    ) -> Vec<(WaiterId, Refusal)> {
        if !self.some.is_empty() {
            let mut next = Vec::new();
            while !portion.is_over() {
                let Some((id, why)) = self.some.pop_first() else {
                    break;
                };
                let waiter = waiters.get(&id);
                if waiter.is_some_and(|waiter| portion.takes(waiter.keys.len())) {
                    next.push((id, why));
                }
            }
            return next;
        }
        if let Some((key, of)) = self.lines.iter_mut().next() {
            let key = key.clone();
            let (next, is_end) = of.take(waiters, lines.get(&key), portion);
            if is_end {
                self.lines.remove(&key);
            }
            return next;
        }
        let all = waiters.range(self.all.clone());
        let all: Vec<_> = all
            .take_while(|(_, waiter)| portion.takes(waiter.keys.len()))
            .collect();
        self.all.start = all.last().map_or(self.all.end, |(id, _)| id.next());
        let queued = all.into_iter().filter(|(_, waiter)| waiter.queued);
        queued
            .map(|(id, _)| (*id, Refusal::NoLongerMaster))
            .collect()
    }
}
