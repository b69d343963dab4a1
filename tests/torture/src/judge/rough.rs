//! When something was done to servers or clients, or they stood still, so that for a while time is
//! no measure.

use rlock_torture::history::{Fault, Stall};

use crate::clocks;
use crate::past::{moves_a_slot, switches, NEVER};

/// After a fault of a whole server it takes so long until all is as before, us.
const SETTLE: u64 = 1_500_000;
/// And after a stall of the machine.
const SHORT: u64 = 100_000;
/// A request that was lost is done or forgotten after so long, us.
pub const DONE: u64 = 500_000;
/// Of the cluster's nodes.
const NODE_TIMEOUT_MS: u64 = 5_000;

/// Such times, in order and apart.
#[derive(Default)]
pub struct Rough(Vec<(u64, u64)>);

impl Rough {
    pub fn new<'a>(
        faults: impl Iterator<Item = &'a Fault>,
        stalls: impl Iterator<Item = &'a Stall>,
        cluster: bool,
    ) -> Self {
        // Nodes take each other for dead by it.
        let jumps = |fault: &Fault| {
            cluster && clocks::steps(&fault.kind) && fault.ms >= NODE_TIMEOUT_MS / 2
        };
        let faults = faults.filter(|fault| disturbs(&fault.kind) || jumps(fault));
        let faults = faults.map(|fault| (fault.begin, fault.end + SETTLE));
        let stalls = stalls.map(|stall| (stall.from, stall.to + SHORT));
        let mut all: Vec<(u64, u64)> = faults.chain(stalls).collect();
        all.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match apart.last_mut() {
                Some((_, last)) if from <= *last => *last = to.max(*last),
                _ => apart.push((from, to)),
            }
        }
        Self(apart)
    }

    /// None of it was in all this time, nor shortly before.
    pub fn calm(&self, from: u64, to: u64) -> bool {
        let early = |(_, end): &(u64, u64)| end.saturating_add(SETTLE) < from;
        let first = self.0.partition_point(early);
        self.0.get(first).is_none_or(|(begin, _)| *begin > to)
    }

    /// When the first of it began after this moment.
    pub fn next(&self, after: u64) -> u64 {
        let at = self.0.partition_point(|(_, end)| *end < after);
        self.0
            .get(at)
            .map_or(NEVER, |(begin, _)| (*begin).max(after))
    }

    /// By when what was under way at this moment has been done.
    pub fn settled(&self, at: u64) -> u64 {
        let mut until = at.saturating_add(DONE);
        for (begin, end) in &self.0 {
            if *begin < until && *end + DONE > until {
                until = end + DONE;
            }
        }
        until
    }
}

/// Faults after which time is no measure for a while.
fn disturbs(kind: &str) -> bool {
    let kinds = [
        "disk-exit",
        "disk-full",
        "restart",
        "restart-empty",
        "stop",
        "stop-client",
        "pause",
        "reload",
        "rewrite",
        "min-replicas",
        "detach",
        "demote",
        "failover",
        "swapdb",
    ];
    kinds.contains(&kind) || moves_a_slot(kind) || switches(kind)
}
