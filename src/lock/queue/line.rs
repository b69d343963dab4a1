//! The queue of one key.

use std::collections::BTreeSet;

use super::order::Order;
use super::rank::Rank;
use super::waiter::Waiter;
use crate::lock::{Mode, WaiterId};

/// Of a key that nobody waits for.
pub static NOBODY: Line = Line {
    queue: Order::Nobody,
    entangled: Order::Nobody,
    hoarders: BTreeSet::new(),
    readers: 0,
    for_permits: 0,
};

/// Those who wait for one key.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub queue: Order,
    /// Those of them whose owners wait in another place too: only through such can
    /// waiting go round in a cycle.
    pub entangled: Order,
    /// Those whose owners hold permits here, or held some when they were marked.
    pub hoarders: BTreeSet<WaiterId>,
    /// So many of them want to read, and so many want permits.
    readers: u32,
    for_permits: u32,
}

impl Line {
    /// Puts a request into its place; the one that stood there.
    pub fn insert(&mut self, id: WaiterId, waiter: &Waiter) -> Option<WaiterId> {
        if let Some(count) = self.count_of(waiter.want.mode) {
            *count = count.saturating_add(1);
        }
        self.queue.insert(waiter.rank.clone(), id)
    }

    /// Takes a request out of its place.
    pub fn remove(&mut self, waiter: &Waiter) -> Option<WaiterId> {
        if let Some(count) = self.count_of(waiter.want.mode) {
            *count = count.saturating_sub(1);
        }
        self.queue.remove(&waiter.rank)
    }

    fn count_of(&mut self, mode: Mode) -> Option<&mut u32> {
        match mode {
            Mode::Read => Some(&mut self.readers),
            Mode::Permits => Some(&mut self.for_permits),
            Mode::Exclusive | Mode::Write => None,
        }
    }

    /// All that stand here want it in this mode, in which several may hold it.
    pub fn is_all_of(&self, mode: Mode) -> bool {
        let count = match mode {
            Mode::Read => self.readers,
            Mode::Permits => self.for_permits,
            Mode::Exclusive | Mode::Write => return false,
        };
        usize::try_from(count) == Ok(self.queue.len())
    }

    /// None of their owners waits elsewhere, or holds what others here wait for.
    pub fn is_plain(&self) -> bool {
        self.entangled.is_empty() && self.hoarders.is_empty()
    }

    pub fn first(&self) -> Option<(&Rank, WaiterId)> {
        self.queue.first()
    }

    /// Asserts that those who stand here are counted.
    #[cfg(test)]
    pub fn check<'a>(&self, all: impl Iterator<Item = &'a Waiter>) {
        let modes: Vec<Mode> = all.map(|waiter| waiter.want.mode).collect();
        let count = |mode| modes.iter().filter(|its| **its == mode).count();
        assert_eq!(self.readers as usize, count(Mode::Read));
        assert_eq!(self.for_permits as usize, count(Mode::Permits));
    }
}
