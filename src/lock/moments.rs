//! How many things began in each ms, so that the oldest is known without a look at all of
//! them.
//!
//! They begin in the order of time as a rule, and most are over soon: so the newest stands last
//! in a list. A ms of which all are over goes when it comes to be the first, or with all others of
//! its kind once they are most.

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
    /// Where this ms stands, or would.
    fn place(&self, ms: i64) -> usize {
        match self.all.back() {
            Some((last, _)) if *last >= ms => self.all.partition_point(|(at, _)| *at < ms),
            _ => self.all.len(),
        }
    }

    /// One more that began then.
    pub fn add(&mut self, ms: i64) {
        let place = self.place(ms);
        match self.all.get_mut(place).filter(|(at, _)| *at == ms) {
            Some((_, count)) => {
                self.over = self.over.saturating_sub(usize::from(*count == 0));
                *count = count.saturating_add(1);
            }
            None => self.all.insert(place, (ms, 1)),
        }
    }

    /// One of them is over.
    pub fn remove(&mut self, ms: i64) {
        let place = self.place(ms);
        let known = self.all.get_mut(place).filter(|(at, _)| *at == ms);
        debug_assert!(known.is_some(), "what is over began");
        let Some((_, count)) = known else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.over = self.over.saturating_add(1);
            self.forget();
        }
    }

    fn forget(&mut self) {
        while self.all.front().is_some_and(|(_, count)| *count == 0) {
            self.all.pop_front();
            self.over = self.over.saturating_sub(1);
        }
        if self.over > KEPT && self.over > self.all.len() / 2 {
            self.all.retain(|(_, count)| *count > 0);
            self.over = 0;
        }
        if self.all.capacity() > KEPT && self.all.len() < self.all.capacity() / 8 {
            self.all.shrink_to(self.all.len().saturating_mul(2));
        }
    }

    /// When the oldest began.
    pub fn first(&self) -> Option<i64> {
        self.all.front().map(|(ms, _)| *ms)
    }
}

#[cfg(test)]
impl PartialEq for Moments {
    fn eq(&self, other: &Self) -> bool {
        let there = |moments: &Self| {
            let all = moments.all.iter().filter(|(_, count)| *count > 0);
            all.copied().collect::<Vec<_>>()
        };
        there(self) == there(other)
    }
}

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
