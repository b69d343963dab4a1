//! The requests of one owner that wait.
//!
//! A program may use one owner for all that it does, so there can be thousands, and
//! whoever asks for those on one key must not go through all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::rank::Rank;
use crate::lock::{Key, WaiterId};

#[derive(Clone, Debug, Default)]
pub struct Requests {
    pub ids: BTreeSet<WaiterId>,
    /// The places of all of them, in order, while the owner waits in several.
    places: BTreeMap<Key, Vec<(Rank, WaiterId)>>,
}

impl Requests {
    /// The only one, if there is but one.
    pub fn only(&self) -> Option<WaiterId> {
        self.ids.first().copied().filter(|_| self.ids.len() == 1)
    }

    /// Marks a place of an owner that waits in several, or takes the mark away.
    pub fn mark(&mut self, key: &Key, rank: &Rank, id: WaiterId, on: bool) {
        let there = self.places.entry(key.clone()).or_default();
        let place = (rank.clone(), id);
        match there.binary_search(&place) {
            Err(at) if on => there.insert(at, place),
            Ok(at) if !on => drop(there.remove(at)),
            _ => {}
        }
        if there.is_empty() {
            self.places.remove(key);
        }
    }

    /// The requests for a key, in order, of an owner that waits in several places.
    pub fn on(&self, key: &Key) -> &[(Rank, WaiterId)] {
        self.places.get(key).map_or(&[], Vec::as_slice)
    }
}
