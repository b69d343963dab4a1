//! How many things began in each ms, so that the oldest is known without a look at all of
//! them.
//!
//! A B-tree counts them. One that never begins stays in it, so that a lock taken and
//! released alone does not build and tear down the tree each time.

use std::collections::BTreeMap;

const NEVER: i64 = i64::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moments(BTreeMap<i64, u32>);

impl Default for Moments {
    fn default() -> Self {
        Self(BTreeMap::from([(NEVER, 1)]))
    }
}

impl Moments {
    /// One more that began then.
    pub fn add(&mut self, ms: i64) {
        let count = self.0.entry(ms).or_default();
        *count = count.saturating_add(1);
    }

    /// One of them is over.
    pub fn remove(&mut self, ms: i64) {
        let count = self.0.get_mut(&ms);
        debug_assert!(count.is_some(), "what is over began");
        let Some(count) = count else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.0.remove(&ms);
        }
    }

    /// When the oldest began.
    pub fn first(&self) -> Option<i64> {
        let first = self.0.first_key_value().map(|(ms, _)| *ms);
        first.filter(|ms| *ms < NEVER)
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
}
