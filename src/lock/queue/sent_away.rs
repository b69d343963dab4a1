//! Requests that are to be refused, some at a time: their keys are another server's, or this
//! one is no master any more.

use std::collections::BTreeMap;
use std::ops::Range;

use super::portion::Portion;
use super::waiter::Waiter;
use crate::lock::{Refusal, WaiterId};

#[derive(Clone, Debug, Default)]
pub struct SentAway {
    /// Each once, however often it is heard.
    some: BTreeMap<WaiterId, Refusal>,
    /// And all that are queued, of these numbers.
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

    /// Whether this one is to be refused for a reason of its own.
    pub fn has(&self, id: WaiterId) -> bool {
        self.some.contains_key(&id)
    }

    /// It is gone before that.
    pub fn remove(&mut self, id: WaiterId) {
        self.some.remove(&id);
    }

    pub fn is_empty(&self) -> bool {
        self.some.is_empty() && self.all.is_empty()
    }

    /// The next of those that wait still, with so many keys.
    pub fn take(
        &mut self,
        waiters: &BTreeMap<WaiterId, Box<Waiter>>,
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
        let all = waiters.range(self.all.clone());
        let all: Vec<_> = all
            .take_while(|(_, waiter)| portion.takes(waiter.keys.len()))
            .collect();
        self.all.start = all.last().map_or(self.all.end, |(id, _)| id.next());
        let queued = all.into_iter().filter(|(_, waiter)| waiter.queued);
        queued.map(|(id, _)| (*id, Refusal::SentAway)).collect()
    }
}
