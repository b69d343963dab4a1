//! What is found of requests by their owners.

use super::super::order::Order;
use super::super::rank::Rank;
use super::super::waiter::Waiter;
use super::Queues;
use crate::lock::{Key, Owner, WaiterId};

impl Queues {
    /// An owner that waits, by the copy of its name that is kept.
    pub fn owner(&self, owner: &[u8]) -> Option<&Owner> {
        self.of_owner(owner).next().map(|waiter| &waiter.want.owner)
    }

    /// The requests of an owner.
    pub fn of_owner<'a, 'o>(
        &'a self,
        owner: &'o [u8],
    ) -> impl Iterator<Item = &'a Waiter> + use<'a, 'o> {
        self.ids_of(owner).filter_map(|id| self.get(id))
    }

    /// In order of arrival.
    pub fn ids_of<'a, 'o>(
        &'a self,
        owner: &'o [u8],
    ) -> impl Iterator<Item = WaiterId> + use<'a, 'o> {
        self.ids_by(self.hash(owner), owner)
    }

    /// The only request of an owner, if it has but one.
    fn only(&self, owner: &[u8]) -> Option<WaiterId> {
        let mut ids = self.ids_of(owner);
        ids.next().filter(|_| ids.next().is_none())
    }

    /// The requests of an owner for a key, in order.
    pub fn requests<'a>(
        &'a self,
        owner: &[u8],
        key: &Key,
    ) -> impl Iterator<Item = (&'a Rank, WaiterId)> + use<'a> {
        let only = self.only(owner);
        let waiter = only.and_then(|id| Some((self.get(id)?, id)));
        // One for very many keys has its places too.
        let of_one = waiter.filter(|(waiter, _)| !waiter.is_many());
        let places = match of_one {
            None => self.places.get(owner).and_then(|places| places.on(key)),
            Some(_) => None,
        };
        let one = of_one.filter(|(waiter, _)| waiter.keys.contains(key));
        let one = one.map(|(waiter, id)| (&waiter.rank, id));
        one.into_iter()
            .chain(places.into_iter().flat_map(Order::iter))
    }

    /// The place of an owner's first request for a key.
    pub fn first_of(&self, owner: &[u8], key: &Key) -> Option<&Rank> {
        self.requests(owner, key).next().map(|(rank, _)| rank)
    }

    /// An owner's next request behind this one, in order of arrival.
    pub fn next_of(&self, owner: &[u8], behind: Option<WaiterId>) -> Option<WaiterId> {
        let from = behind.map_or(WaiterId::FIRST, WaiterId::next);
        self.ids_from(self.hash(owner), owner, from).next()
    }

    /// Forgets the newest of those marks that are not true any more.
    pub fn forget_hoards(&mut self, key: &Key, holds: impl Fn(&Owner) -> bool) {
        let waiters = &self.waiters;
        let is_true = |id: &WaiterId| waiters.get(id).is_some_and(|w| holds(&w.want.owner));
        if let Some(line) = self.lines.get_mut(key) {
            while let Some(newest) = line.hoarders.last().copied() {
                if is_true(&newest) {
                    break;
                }
                line.hoarders.remove(&newest);
            }
        }
    }
}
