//! From when to when an owner surely held a lock: from the reply that says so to the
//! first moment at which anything may have ended it. Nothing is certain but that;
//! where two accounts are possible the shorter one counts.

use crate::past::{ends_all, ends_key, Past, NEVER};
use crate::request::Mode;

/// What a server may be off by when it counts from a request to its deadline, us.
const ROUNDING: u64 = 5_000;
/// Watchdogs of shorter leases are not relied on: a busy machine may stall for long
/// enough to lose them.
const SAFE_WATCHDOG: u64 = 1_500_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The operation whose reply says so.
    pub op: usize,
    pub mode: Mode,
    pub start: u64,
    pub end: u64,
}

/// Bounds of the form: what was not over by `until` ends holds at `end` at the latest.
#[derive(Default)]
struct Bounds {
    all: Vec<(u64, u64)>,
}

impl Bounds {
    fn add(&mut self, until: u64, end: u64) {
        self.all.push((until, end));
    }

    /// Makes each end the least of it and those that are over later.
    fn close(&mut self) {
        self.all.sort_unstable();
        let mut least = NEVER;
        for (_, end) in self.all.iter_mut().rev() {
            least = least.min(*end);
            *end = least;
        }
    }

    /// The end that is set to what began at this moment.
    fn after(&self, from: u64) -> u64 {
        let at = self.all.partition_point(|(until, _)| *until < from);
        self.all.get(at).map_or(NEVER, |(_, end)| *end)
    }
}

/// What may end the holds of a lock, whoever has it.
pub struct Ends {
    bounds: Bounds,
}

impl Ends {
    pub fn new(past: &Past, db: u32, key: &str) -> Self {
        let mut bounds = Bounds::default();
        for fault in &past.faults {
            let here = fault.db == db && fault.keys.iter().any(|one| one == key);
            if ends_all(&fault.kind) {
                bounds.add(fault.end, fault.begin);
            } else if here && ends_key(&fault.kind) {
                let later = (fault.ms * 1000).saturating_sub(ROUNDING);
                bounds.add(fault.end, fault.begin + later);
            }
        }
        bounds.close();
        Self { bounds }
    }
}

/// All that one owner surely held of a lock, by what it was told in `ops`.
pub fn certain(past: &Past, ends: &Ends, ops: &[usize]) -> Vec<Hold> {
    // A release of a mode ends holds of that mode only; else all is common.
    let mut released = [Bounds::default(), Bounds::default(), Bounds::default()];
    let mut common = Bounds::default();
    for at in ops {
        let asked = &past.ops[*at];
        let harmless = matches!(asked.op.out, rlock_torture::history::Out::Error(_));
        if harmless {
            continue;
        }
        if asked.request.releases() {
            let left = match asked.op.out {
                rlock_torture::history::Out::Int(left) => left,
                _ => 0,
            };
            let many = asked.request.verb == crate::request::Verb::Mrelease;
            if left == 0 || many {
                released[asked.mode() as usize].add(asked.done, asked.op.call);
            }
        }
        if asked.request.renews() {
            let end = asked.op.call + asked.request.lease_us;
            common.add(asked.done, end.saturating_sub(ROUNDING));
        }
        if asked.request.watchdog {
            let (from, by) = past.death(asked.op.conn);
            common.add(by, from);
        }
    }
    released.iter_mut().for_each(Bounds::close);
    common.close();

    let mut holds = Vec::new();
    for at in ops {
        let asked = &past.ops[*at];
        let told = match asked.op.out {
            rlock_torture::history::Out::Int(_) if asked.request.acquires() => true,
            rlock_torture::history::Out::Int(1) if asked.request.renews() => true,
            _ => false,
        };
        let Some(start) = asked.op.reply.filter(|_| told) else {
            continue;
        };
        let call = asked.op.call;
        let mut end = (call + asked.request.lease_us).saturating_sub(ROUNDING);
        if asked.request.watchdog && asked.request.lease_us >= SAFE_WATCHDOG {
            end = end.max(past.next_rough(call));
        }
        let mode = asked.mode();
        end = end.min(common.after(call)).min(ends.bounds.after(call));
        end = end.min(released[mode as usize].after(call));
        if end > start {
            holds.push(Hold {
                op: *at,
                mode,
                start,
                end,
            });
        }
    }
    holds
}
