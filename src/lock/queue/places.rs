//! Where the requests of one owner stand that waits in several places.
//!
//! A program may use one owner for all that it does, so there can be thousands, and
//! whoever asks for those on one key must not go through all of them.

use std::collections::BTreeMap;

use super::rank::Rank;
use crate::lock::{Key, WaiterId};

/// By their keys, in order.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<Key, Vec<(Rank, WaiterId)>>);

impl Places {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Marks a place, or takes the mark away.
    pub fn mark(&mut self, key: &Key, rank: &Rank, id: WaiterId, on: bool) {
        let there = self.0.entry(key.clone()).or_default();
        let place = (rank.clone(), id);
        match there.binary_search(&place) {
            Err(at) if on => there.insert(at, place),
            Ok(at) if !on => drop(there.remove(at)),
            _ => {}
        }
        if there.is_empty() {
            self.0.remove(key);
        }
    }

    /// The requests for a key.
    pub fn on(&self, key: &Key) -> &[(Rank, WaiterId)] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
}
