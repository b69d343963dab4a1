//! What operators are told of the whole.

use super::Core;
use crate::lock::counters::Counters;

/// What has happened since the module was loaded, and what is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub acquired: u64,
    /// Requests that did not find the lock at their disposal.
    pub contended: u64,
    /// Of those acquired: after a wait.
    pub granted: u64,
    pub timed_out: u64,
    pub released: u64,
    pub renewed: u64,
    pub expired: u64,
    pub forced: u64,
    pub evicted: u64,
    pub deadlocks: u64,
    pub taken_back: u64,
    /// How often a lock was left free for those who wait by subscription.
    pub turns: u64,
    /// And how often one of them took it.
    pub turns_used: u64,
    pub waiting: u64,
    /// Holds that belong to a connection.
    pub watched: u64,
    /// How long those waited who were granted, us.
    pub wait_p50_us: u64,
    pub wait_p99_us: u64,
    pub wait_max_us: u64,
}

impl Core {
    pub fn stats(&self) -> Stats {
        let Counters {
            events: [acquired, released, renewed, expired, forced, evicted],
            ..
        } = self.counters;
        let counters = &self.counters;
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        Stats {
            acquired,
            contended: counters.contended,
            granted: counters.waits.count,
            timed_out: counters.timed_out,
            released,
            renewed,
            expired,
            forced,
            evicted,
            deadlocks: counters.deadlocks,
            taken_back: counters.taken_back,
            turns: counters.turns,
            turns_used: counters.turns_used,
            waiting: count(self.queues.len()),
            watched: self.watchdogs.count(&self.locks),
            wait_p50_us: counters.waits.percentile(50),
            wait_p99_us: counters.waits.percentile(99),
            wait_max_us: counters.waits.longest_us,
        }
    }
}
