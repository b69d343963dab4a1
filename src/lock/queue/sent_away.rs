//! Requests that are to be refused, some at a time: their keys are another server's, or this
//! one is no master any more, or they want more than there is now.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use super::line::Line;
use super::portion::Portion;
use super::rank::Rank;
use super::waiter::Waiter;
use crate::lock::{Key, Mode, Refusal, WaiterId};

/// Which of those that wait for a key are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are queued: the server itself sends away clients that are blocked.
    Queued,
    /// All that want more permits than this.
    WantsMore(i64),
}

impl Which {
    fn has(self, waiter: &Waiter) -> bool {
        let Which::WantsMore(limit) = self else {
            return waiter.queued;
        };
        waiter.want.mode == Mode::Permits && waiter.want.share.count() > limit
    }

    /// Both of these. Who is queued goes whatever else is asked for.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Which::WantsMore(one), Which::WantsMore(other)) => Which::WantsMore(one.min(other)),
            _ => Which::Queued,
        }
    }
}

/// Those who wait for a key.
#[derive(Clone, Debug)]
struct SentOn {
    which: Which,
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
            if id < self.before && waiter.is_some_and(|waiter| self.which.has(waiter)) {
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
    /// Of those that wait for these keys,
    lines: BTreeMap<Key, SentOn>,
    /// and all that are queued, of these numbers.
    all: Range<WaiterId>,
}

impl SentAway {
    /// All with a smaller number than this one.
    pub fn add_all(&mut self, before: WaiterId) {
        self.all = WaiterId::FIRST..before;
    }

    /// These of a key, with a smaller number than this one. Those that were gone over are gone
    /// over again only if more are to be refused than before.
    pub fn add_line(&mut self, key: &Key, which: Which, why: &Refusal, before: WaiterId) {
        let new = || SentOn {
            which,
            why: why.clone(),
            before,
            behind: None,
        };
        let line = self.lines.entry(key.clone()).or_insert_with(new);
        let both = line.which.and(which);
        if both != line.which {
            *line = SentOn {
                which: both,
                ..new()
            };
        }
        line.before = before;
    }

    /// Whether some of those who wait for a key may still be refused. Nobody is judged by them.
    pub fn may_have(&self, key: &Key) -> bool {
        self.lines.contains_key(key) || !self.all.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.all.is_empty()
    }

    /// The next of those that wait still, with so many keys; and the key of which these were the
    /// last that want more than there is: who else waits for it is judged now.
    pub fn take(
        &mut self,
        (waiters, lines): (&BTreeMap<WaiterId, Box<Waiter>>, &BTreeMap<Key, Line>),
        mut portion: Portion,
    ) -> (Vec<(WaiterId, Refusal)>, Option<Key>) {
        if let Some((key, of)) = self.lines.iter_mut().next() {
            let key = key.clone();
            let (next, is_end) = of.take(waiters, lines.get(&key), portion);
            let gone = is_end.then(|| self.lines.remove(&key)).flatten();
            let is_over = gone.is_some_and(|of| of.which != Which::Queued);
            return (next, is_over.then_some(key));
        }
        let all = waiters.range(self.all.clone());
        let all: Vec<_> = all
            .take_while(|(_, waiter)| portion.takes(waiter.keys.len()))
            .collect();
        self.all.start = all.last().map_or(self.all.end, |(id, _)| id.next());
        let queued = all.into_iter().filter(|(_, waiter)| waiter.queued);
        let queued = queued.map(|(id, _)| (*id, Refusal::NoLongerMaster));
        (queued.collect(), None)
    }
}
