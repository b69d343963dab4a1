//! The server's pulse: its cron, which runs some times a second by the monotonic
//! clock, tells that it lives.
//!
//! A server that stood still (a stop, a suspended machine, a slow command) knows
//! nothing of what happened meanwhile: it may have been replaced, and its count of
//! replicas is as old as the stop. What is due by then would be done in the first
//! moment, before it has read a byte. So after a gap in the pulse the gate stays
//! shut until the server could hear (`run::gate`).

use std::cell::Cell;

use crate::lock::Gate;
use crate::server::sys::MachineUs;

/// Replicas acknowledge once a second: after a shorter gap the server's knowledge of
/// them is no older than it always is, and nobody replaces a master that fast.
const GAP_US: i64 = 1_000_000;

/// At the second beat after a gap the event loop has gone round, so that what lay in
/// the sockets is read, and answers of the cluster's other nodes came in.
const BEATS: u8 = 2;

/// Replicas that are there answer much sooner.
const PATIENCE_US: i64 = 2_000_000;

/// They tell how far they were before the question: the second one shows that the
/// first was heard.
const QUESTIONS: u8 = 2;

/// So that the second goes out by itself.
const APART_US: i64 = 5_000;

/// The server woke from a gap, and may not have heard yet what happened meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    /// How often the cron has run since.
    beats: u8,
    asked: Option<Asked>,
}

/// What replicas are to acknowledge, to show that they heard of this master since it
/// woke. What they had acknowledged before may lie in the sockets still.
#[derive(Clone, Copy, Debug)]
struct Asked {
    offset: i64,
    times: u8,
    first: MachineUs,
    last: MachineUs,
}

/// The replicas of this master, as it knows them.
#[derive(Default)]
pub struct Replicas {
    /// How far this server has written, in bytes.
    pub offset: i64,
    /// How far each that is online has acknowledged.
    pub acknowledged: Vec<i64>,
    /// How many are needed for a write.
    pub needed: usize,
}

impl Replicas {
    fn enough_beyond(&self, offset: i64) -> bool {
        let beyond = self.acknowledged.iter().filter(|at| **at > offset);
        beyond.count() >= self.needed
    }
}

pub struct Pulse {
    last_beat: Cell<MachineUs>,
    /// The time between two beats, us.
    period_us: Cell<i64>,
    /// None when the server is up to date.
    gap: Cell<Option<Gap>>,
}

impl Pulse {
    pub fn new() -> Self {
        Self {
            last_beat: Cell::new(MachineUs::now()),
            period_us: Cell::new(0),
            gap: Cell::new(None),
        }
    }

    fn missed(&self, now: MachineUs) -> bool {
        let longest = self.period_us.get().saturating_mul(2).max(GAP_US);
        now.since(self.last_beat.get()) > longest
    }

    /// The cron runs, so many times a second.
    pub fn beat(&self, now: MachineUs, hz: i32) {
        let gap = if self.missed(now) {
            Some(Gap::default())
        } else {
            self.gap.get()
        };
        self.gap.set(gap.map(|gap| Gap {
            beats: gap.beats.saturating_add(1),
            ..gap
        }));
        self.last_beat.set(now);
        self.period_us
            .set(1_000_000_i64.checked_div(hz.into()).unwrap_or(0));
    }

    /// Whether the server has heard what happened while it stood still, if it did: shut
    /// means that its replicas say nothing. `look`: looks at the replicas. `ask`: asks them
    /// to acknowledge what they have.
    pub fn gate(
        &self,
        now: MachineUs,
        look: impl FnOnce() -> Replicas,
        ask: impl FnOnce(),
    ) -> Gate {
        if self.missed(now) {
            return Gate::Waking;
        }
        let Some(gap) = self.gap.get() else {
            return Gate::Open;
        };
        if gap.beats < BEATS {
            return Gate::Waking;
        }
        let replicas = look();
        let heard = gap
            .asked
            .is_some_and(|asked| replicas.enough_beyond(asked.offset));
        if heard || replicas.needed == 0 {
            self.gap.set(None);
            return Gate::Open;
        }
        // It goes back when this server has been a replica in between.
        let asked = gap.asked.filter(|asked| asked.offset <= replicas.offset);
        let mut asked = asked.unwrap_or(Asked {
            offset: replicas.offset,
            times: 0,
            first: now,
            last: MachineUs(0),
        });
        if asked.times < QUESTIONS && now.since(asked.last) >= APART_US {
            ask();
            asked.times = asked.times.saturating_add(1);
            asked.last = now;
        }
        self.gap.set(Some(Gap {
            asked: Some(asked),
            ..gap
        }));
        if now.since(asked.first) > PATIENCE_US {
            Gate::Shut
        } else {
            Gate::Waking
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_gap_the_second_beat_counts() {
        let pulse = Pulse::new();
        let beat = |hz| pulse.beat(MachineUs::now(), hz);
        let gap = |us: i64| pulse.last_beat.set(MachineUs(MachineUs::now().0 - us));
        beat(10);
        assert!(pulse.gap.get().is_none());
        assert_eq!(pulse.period_us.get(), 100_000);
        gap(GAP_US + 1);
        assert!(pulse.missed(MachineUs::now()));
        for expected in 1..=BEATS {
            beat(10);
            assert_eq!(pulse.gap.get().map(|gap| gap.beats), Some(expected));
            assert!(!pulse.missed(MachineUs::now()));
        }
        // Slow crons are no gap.
        beat(1);
        gap(GAP_US + 500_000);
        assert!(!pulse.missed(MachineUs::now()));
    }
}
