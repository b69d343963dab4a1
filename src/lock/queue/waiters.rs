//! Requests by their numbers, in so many tables that none is ever large: a table grows in
//! one go, and with a hundred thousand requests in one that would be a stall.

use std::collections::HashMap;

use super::waiter::Waiter;
use crate::lock::WaiterId;

/// One for each number that a byte can be.
const PARTS: usize = 256;

/// One part's.
type Part = HashMap<WaiterId, Box<Waiter>>;

#[derive(Clone, Debug)]
pub struct Waiters {
    parts: Vec<Part>,
    /// And one more, so that there is one for any number.
    last: Part,
    len: usize,
}

impl Default for Waiters {
    fn default() -> Self {
        let parts = std::iter::repeat_with(Part::new).take(PARTS - 1);
        Self {
            parts: parts.collect(),
            last: Part::new(),
            len: 0,
        }
    }
}

impl Waiters {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, id: WaiterId) -> Option<&Waiter> {
        let part = self.parts.get(number(id)).unwrap_or(&self.last);
        part.get(&id).map(|waiter| &**waiter)
    }

    fn part_mut(&mut self, id: WaiterId) -> &mut Part {
        self.parts.get_mut(number(id)).unwrap_or(&mut self.last)
    }

    pub fn insert(&mut self, id: WaiterId, waiter: Waiter) {
        let other = self.part_mut(id).insert(id, Box::new(waiter));
        debug_assert!(other.is_none(), "no two requests have one number");
        self.len = self.len.saturating_add(1);
    }

    pub fn remove(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.part_mut(id).remove(&id)?;
        self.len = self.len.saturating_sub(1);
        Some(*waiter)
    }

    pub fn iter(&self) -> impl Iterator<Item = (WaiterId, &Waiter)> {
        let all = self.parts.iter().flatten().chain(&self.last);
        all.map(|(id, waiter)| (*id, &**waiter))
    }
}

/// The part of a request.
fn number(id: WaiterId) -> usize {
    let [low, ..] = id.get().to_le_bytes();
    usize::from(low)
}
