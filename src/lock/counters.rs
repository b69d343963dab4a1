//! Counters for operators.

use super::durations::Durations;
use super::{Event, Reason};
use std::collections::BTreeMap;

/// How often each of these has happened since the module was loaded.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    // The events.
    pub acquired: u64,
    pub released: u64,
    pub renewed: u64,
    pub expired: u64,
    pub forced: u64,
    pub evicted: u64,
    /// Requests that did not find the lock at their disposal.
    pub contended: u64,
    pub timed_out: u64,
    pub cancelled: u64,
    pub deadlocks: u64,
    /// Requests that were refused because too many wait.
    pub turned_away: u64,
    pub taken_back: u64,
    /// Holds that ONCE has bound to another connection or by another tag.
    pub rebound: u64,
    /// A lock was left free for those who wait by subscription,
    pub turns: u64,
    /// and one of them took it.
    pub turns_used: u64,
    /// Losses of holds that a connection was bound to, by WATCHDOG or NOTIFY.
    pub lost: BTreeMap<Reason, u64>,
    /// How long those waited who were granted.
    pub waits: Durations,
    /// How long owners held locks.
    pub holds: Durations,
}

impl Counters {
    pub fn event(&mut self, event: Event) {
        Self::up(match event {
            Event::Acquired => &mut self.acquired,
            Event::Released => &mut self.released,
            Event::Renewed => &mut self.renewed,
            Event::Expired => &mut self.expired,
            Event::Forced => &mut self.forced,
            Event::Evicted => &mut self.evicted,
        });
    }

    pub fn lost(&mut self, reason: Reason) {
        Self::up(self.lost.entry(reason).or_default());
    }

    pub fn up(count: &mut u64) {
        *count = count.saturating_add(1);
    }
}
