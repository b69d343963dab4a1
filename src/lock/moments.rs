//! How many things began in each ms, so that the oldest is known without a look at all of
//! them.
//!
//! They begin in the order of time as a rule, and most are over soon: so the newest stands last
//! in a list. A ms of which all are over goes when it comes to be the first or the last, or with
//! all others of its kind once they are most.

use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// By their ms.
    all: VecDeque<(i64, u32)>,
    /// So many of them are over.
    over: usize,
}

/// So many that are over are kept.
const KEPT: usize = 16;

impl Moments {
    /// One more that began then.
    pub fn add(&mut self, ms: i64) {
        if self.all.back().is_none_or(|(last, _)| *last < ms) {
            return self.all.push_back((ms, 1));
        }
        match self.all.binary_search_by_key(&ms, |(at, _)| *at) {
            Ok(at) => {
                let Some((_, count)) = self.all.get_mut(at) else {
                    return;
                };
                self.over = self.over.saturating_sub(usize::from(*count == 0));
                *count = count.saturating_add(1);
            }
            // The clock was set back.
            Err(at) => self.all.insert(at, (ms, 1)),
        }
    }

    /// One of them is over.
    pub fn remove(&mut self, ms: i64) {
        let at = self.all.binary_search_by_key(&ms, |(at, _)| *at);
        debug_assert!(at.is_ok(), "what is over began");
        let known = at.ok().and_then(|at| self.all.get_mut(at));
        let Some((_, count)) = known.filter(|(_, count)| *count > 0) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.over = self.over.saturating_add(1);
            self.forget();
        }
    }

    fn forget(&mut self) {
        let is_over = |end: Option<&(i64, u32)>| end.is_some_and(|(_, count)| *count == 0);
        while is_over(self.all.front()) {
            self.all.pop_front();
            self.over = self.over.saturating_sub(1);
        }
        while is_over(self.all.back()) {
            self.all.pop_back();
            self.over = self.over.saturating_sub(1);
        }
        if self.over > KEPT && self.over > self.all.len() / 2 {
            self.all.retain(|(_, count)| *count > 0);
            self.over = 0;
        }
        if self.all.len() < self.all.capacity() / 4 {
            self.all
                .shrink_to(self.all.len().saturating_mul(2).max(KEPT));
        }
    }

    /// When the oldest began.
    pub fn first(&self) -> Option<i64> {
        self.all.front().map(|(ms, _)| *ms)
    }
}

impl PartialEq for Moments {
    fn eq(&self, other: &Self) -> bool {
        let there = |moments: &Self| {
            let all = moments.all.iter().filter(|(_, count)| *count > 0);
            all.copied().collect::<Vec<_>>()
        };
        there(self) == there(other)
    }
}

impl Eq for Moments {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_while_it_is_there() {
        let mut moments = Moments::default();
        assert_eq!(moments.first(), None);
        for ms in [7, 5, 9, 5] {
            moments.add(ms);
        }
        for (over, first) in [(9, Some(5)), (5, Some(5)), (5, Some(7)), (7, None)] {
            moments.remove(over);
            assert_eq!(moments.first(), first, "{over}");
        }
        assert_eq!(moments, Moments::default());
    }

    /// One that stays keeps no more of the others than there are.
    #[test]
    fn those_that_are_over_are_forgotten() {
        let mut moments = Moments::default();
        moments.add(0);
        for ms in 1..10_000 {
            moments.add(ms);
            moments.add(ms + 1);
            moments.remove(ms);
            moments.remove(ms + 1);
        }
        assert!(moments.all.len() < 100 && moments.all.capacity() < 200);
        for ms in 1..1000 {
            moments.add(ms);
        }
        for ms in (1..1000).rev() {
            moments.remove(ms);
            assert_eq!(moments.first(), Some(0));
        }
        moments.remove(0);
        assert_eq!((moments.first(), moments.over), (None, 0));
    }
}
