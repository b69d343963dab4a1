//! Where the requests of one owner stand that waits in several places.
//!
//! A program may use one owner for all that it does, so there can be thousands, and
//! whoever asks for those on one key must not go through all of them.

use std::collections::BTreeMap;

use super::order::Order;
use super::rank::Rank;
use crate::lock::{Key, WaiterId};

/// By their keys, in order.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<Key, Order>);

impl Places {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Marks a place.
    pub fn mark(&mut self, key: &Key, rank: &Rank, id: WaiterId) {
        let there = self.0.entry(key.clone()).or_default();
        there.insert(rank.clone(), id);
    }

    /// Takes the mark away.
    pub fn unmark(&mut self, key: &Key, rank: &Rank) {
        let Some(there) = self.0.get_mut(key) else {
            return;
        };
        there.remove(rank);
        if there.is_empty() {
            self.0.remove(key);
        }
    }

    /// The requests for a key.
    pub fn on(&self, key: &Key) -> Option<&Order> {
        self.0.get(key)
    }
}
