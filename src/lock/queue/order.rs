//! Requests in the order of their ranks, or some of them.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use super::rank::Rank;
use crate::lock::WaiterId;

/// One stands here as a rule, and there are very many such: it needs no tree.
#[derive(Clone, Debug, Default)]
pub enum Order {
    #[default]
    Nobody,
    One(Rank, WaiterId),
    Many(BTreeMap<Rank, WaiterId>),
}

impl Order {
    /// Puts a request in its place. Who stood there.
    pub fn insert(&mut self, rank: Rank, id: WaiterId) -> Option<WaiterId> {
        match std::mem::take(self) {
            Self::Nobody => {
                *self = Self::One(rank, id);
                None
            }
            Self::One(first, other) => {
                let mut all = BTreeMap::from([(first, other)]);
                let before = all.insert(rank, id);
                *self = Self::Many(all);
                before
            }
            Self::Many(mut all) => {
                let before = all.insert(rank, id);
                *self = Self::Many(all);
                before
            }
        }
    }

    /// Takes out who stands there.
    pub fn remove(&mut self, rank: &Rank) -> Option<WaiterId> {
        match self {
            Self::Nobody => None,
            Self::One(its, id) => {
                let id = Some(*id).filter(|_| its == rank)?;
                *self = Self::Nobody;
                Some(id)
            }
            Self::Many(all) => {
                let id = all.remove(rank)?;
                if all.is_empty() {
                    *self = Self::Nobody;
                }
                Some(id)
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Nobody => 0,
            Self::One(..) => 1,
            Self::Many(all) => all.len(),
        }
    }

    /// The first, without a search.
    pub fn first(&self) -> Option<(&Rank, WaiterId)> {
        match self {
            Self::Nobody => None,
            Self::One(rank, id) => Some((rank, *id)),
            Self::Many(all) => all.first_key_value().map(|(rank, id)| (rank, *id)),
        }
    }

    /// The last.
    pub fn last(&self) -> Option<(&Rank, WaiterId)> {
        match self {
            Self::Many(all) => all.last_key_value().map(|(rank, id)| (rank, *id)),
            Self::Nobody | Self::One(..) => self.first(),
        }
    }

    /// Those whose ranks are in this range.
    pub fn range(
        &self,
        range: (Bound<&Rank>, Bound<&Rank>),
    ) -> impl DoubleEndedIterator<Item = (&Rank, WaiterId)> {
        let (one, many) = match self {
            Self::Nobody => (None, None),
            Self::One(rank, id) => (range.contains(rank).then_some((rank, id)), None),
            Self::Many(all) => (None, Some(all.range::<Rank, _>(range))),
        };
        let all = one.into_iter().chain(many.into_iter().flatten());
        all.map(|(rank, id)| (rank, *id))
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Rank, WaiterId)> {
        self.range((Bound::Unbounded, Bound::Unbounded))
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = WaiterId> + '_ {
        self.iter().map(|(_, id)| id)
    }

    /// Who stands there.
    pub fn at(&self, rank: &Rank) -> Option<WaiterId> {
        let there = self.range((Bound::Included(rank), Bound::Included(rank)));
        there.map(|(_, id)| id).next()
    }
}
