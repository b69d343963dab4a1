//! A waiter's place in the one order over all queues.
//!
//! As a rule that is the order of arrival. But an upgrade stands before everybody. One with ONCE
//! has the rank of the request that it takes over, or its own from before. And right before another
//! (behind those let past it sooner) come: whom the deadlock search lets past it, the place of
//! subscribers, and readers let past that place. Their rank is made from the other's.

use std::cmp::Ordering;

use crate::lock::WaiterId;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rank {
    /// `None`: before all.
    arrival: Option<WaiterId>,
    /// Each step leads from one rank to one right before it. As a rule there is none, and
    /// there are very many ranks.
    #[expect(clippy::box_collection, reason = "a pointer in place of three words")]
    before: Option<Box<Vec<WaiterId>>>,
}

impl Rank {
    /// At the end, by order of arrival.
    pub fn arrived(arrival: WaiterId) -> Self {
        Self {
            arrival: Some(arrival),
            before: None,
        }
    }

    /// Before all who wait, in order of arrival among those who do that.
    pub fn front(arrival: WaiterId) -> Self {
        Self {
            arrival: None,
            before: Some(Box::new(vec![arrival])),
        }
    }

    pub fn is_front(&self) -> bool {
        self.arrival.is_none()
    }

    /// By order of arrival alone: all behind it came later.
    pub fn is_of_arrival(&self) -> bool {
        !self.is_front() && self.before.is_none()
    }

    /// Right before another; `number`, the newest of all, orders those who were let past the same one.
    pub fn just_before(other: &Self, number: WaiterId) -> Self {
        let mut before = other.before.clone().unwrap_or_default();
        before.push(number);
        Self {
            arrival: other.arrival,
            before: Some(before),
        }
    }

    fn steps(&self) -> &[WaiterId] {
        self.before.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.arrival.cmp(&other.arrival).then_with(|| {
            let (mine, theirs) = (self.steps(), other.steps());
            let pairs = mine.iter().zip(theirs);
            let differ = pairs.map(|(a, b)| a.cmp(b)).find(|o| o.is_ne());
            // The longer one is let past the shorter one.
            differ.unwrap_or_else(|| theirs.len().cmp(&mine.len()))
        })
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_let_past_comes_right_before() {
        let mut ids = std::iter::successors(Some(WaiterId::FIRST), |id| Some(id.next()));
        let mut id = || ids.next().unwrap();
        let (first, second) = (Rank::arrived(id()), Rank::arrived(id()));
        let past = Rank::just_before(&second, id());
        let later = Rank::just_before(&second, id());
        let past_that = Rank::just_before(&past, id());
        let order = [
            &Rank::front(id()),
            &first,
            &past_that,
            &past,
            &later,
            &second,
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    }
}
