//! The server's pulse: its cron, which runs some times a second by the monotonic
//! clock, shows that it lives.
//!
//! A server that stood still (a stop, a suspended machine, a slow command) knows
//! nothing of what happened meanwhile: it may have been replaced, and its count of
//! replicas is as old as the stop. What is due by then would be done in the first
//! moment, before it has read a byte. So after a gap in the pulse the gate stays
//! shut until the server has had time to read what came meanwhile (`run::gate`).
//!
//! Nobody replaces a server that never had a replica and never was one: its gate stays open.
//! And nobody replaces one while it is silent for a few seconds only: between slow commands, one
//! after the other, it reads as much as it would after a single one.

use std::cell::Cell;

use crate::lock::Gate;
use crate::server::sys::MachineUs;

/// Replicas acknowledge once a second: after a shorter gap the server's knowledge of
/// them is no older than it always is, and nobody replaces a master that fast.
const GAP_US: i64 = 1_000_000;

/// After a gap that is longer it starts to read anew, whatever it had read before: no failover
/// takes less.
const FAILOVER_US: i64 = 5_000_000;

/// In this time the event loop goes round, so that what lay in the sockets is read, and answers
/// of the cluster's other nodes come in.
const READS_US: i64 = 100_000;

/// Replicas that are there answer much sooner.
const PATIENCE_US: i64 = 2_000_000;

/// They reply how far they were before the question: the second reply shows that the first
/// question was read.
const QUESTIONS: u8 = 2;

/// So that the second goes out by itself.
const APART_US: i64 = 5_000;

/// The server woke from a gap, and may not have read yet what happened meanwhile.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// When it woke,
    woke: MachineUs,
    /// and when from the last of several that came one soon after the other.
    woke_last: MachineUs,
    asked: Option<AckRequest>,
}

impl Gap {
    fn until(now: MachineUs) -> Self {
        Self {
            woke: now,
            woke_last: now,
            asked: None,
        }
    }
}

/// What replicas are to acknowledge, to show that they have read from this master since it
/// woke. What they had acknowledged before may lie in the sockets still.
#[derive(Clone, Copy, Debug)]
struct AckRequest {
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
    /// There is or was a replica that could take its place.
    replaceable: Cell<bool>,
}

impl Pulse {
    pub fn new() -> Self {
        Self {
            last_beat: Cell::new(MachineUs::now()),
            period_us: Cell::new(0),
            gap: Cell::new(None),
            replaceable: Cell::new(false),
        }
    }

    /// Somebody could take this server's place, now or later: it has a replica, or was one among
    /// others.
    pub fn can_be_replaced(&self) {
        self.replaceable.set(true);
    }

    /// The gap after which it has yet to read, also one that lasts until now.
    fn gap(&self, now: MachineUs) -> Option<Gap> {
        let (gap, last_beat) = (self.gap.get(), self.last_beat.get());
        let longest = self.period_us.get().saturating_mul(2).max(GAP_US);
        let silence = now.since(last_beat);
        if silence <= longest {
            return gap;
        }
        let goes_on = |gap: &Gap| last_beat.since(gap.woke_last) < GAP_US;
        let gap = gap.filter(|gap| silence <= FAILOVER_US && goes_on(gap));
        Some(Gap {
            woke_last: now,
            ..gap.unwrap_or(Gap::until(now))
        })
    }

    /// The cron runs, so many times a second.
    pub fn beat(&self, now: MachineUs, hz: i32) {
        self.gap.set(self.gap(now));
        self.last_beat.set(now);
        self.period_us
            .set(1_000_000_i64.checked_div(hz.into()).unwrap_or(0));
    }

    /// It has missed nothing, or nobody can have replaced it.
    pub fn is_up_to_date(&self, now: MachineUs) -> bool {
        !self.replaceable.get() || self.gap(now).is_none()
    }

    /// Whether the server has read what happened while it stood still, if it did: shut
    /// means that its replicas do not answer. `look`: looks at the replicas. `ask`: asks them
    /// to acknowledge what they have.
    pub fn gate(
        &self,
        now: MachineUs,
        look: impl FnOnce() -> Replicas,
        ask: impl FnOnce(),
    ) -> Gate {
        let Some(gap) = self.gap(now).filter(|_| self.replaceable.get()) else {
            return Gate::Open;
        };
        if now.since(gap.woke) < READS_US {
            return Gate::Waking;
        }
        let replicas = look();
        let acknowledged = gap
            .asked
            .is_some_and(|asked| replicas.enough_beyond(asked.offset));
        if acknowledged || replicas.needed == 0 {
            self.gap.set(None);
            return Gate::Open;
        }
        // It goes back when this server has been a replica in between.
        let asked = gap.asked.filter(|asked| asked.offset <= replicas.offset);
        let mut asked = asked.unwrap_or(AckRequest {
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

    const S: i64 = 1_000_000;

    struct SimulatedServer {
        pulse: Pulse,
        now: i64,
    }

    impl SimulatedServer {
        fn new() -> Self {
            let server = Self {
                pulse: Pulse::new(),
                now: 1000 * S,
            };
            server.pulse.last_beat.set(MachineUs(server.now));
            server.pulse.can_be_replaced();
            server
        }

        fn beat(&self, hz: i32) {
            self.pulse.beat(MachineUs(self.now), hz);
        }

        fn runs(&mut self, us: i64, hz: i32) {
            for _ in 0..us / (S / i64::from(hz)) {
                self.now += S / i64::from(hz);
                self.beat(hz);
            }
        }

        fn gate(&self) -> Gate {
            self.pulse
                .gate(MachineUs(self.now), Replicas::default, || ())
        }

        /// It stands still, and its cron runs after that, before or after the timer.
        fn stops(&mut self, us: i64, hz: i32) -> Gate {
            self.now += us;
            let before = self.gate();
            self.beat(hz);
            assert_eq!(self.gate(), before);
            before
        }
    }

    #[test]
    fn after_a_gap_it_reads_for_a_tenth_of_a_second() {
        for hz in [1, 10, 500] {
            let mut server = SimulatedServer::new();
            server.runs(2 * S, hz);
            assert_eq!(server.gate(), Gate::Open);
            assert_eq!(server.stops(2 * S + 1, hz), Gate::Waking, "{hz}");
            server.now += READS_US - 1;
            assert_eq!(server.gate(), Gate::Waking, "{hz}");
            server.now += 1;
            assert_eq!(server.gate(), Gate::Open, "{hz}");
        }
    }

    #[test]
    fn slow_crons_are_no_gap() {
        let mut server = SimulatedServer::new();
        server.beat(1);
        server.now += 2 * S;
        assert_eq!(server.gate(), Gate::Open);
    }

    #[test]
    fn one_gap_after_the_other_is_one_unless_there_was_time_for_a_failover() {
        for (next, gate) in [
            (S + 100_000, Gate::Open),
            (FAILOVER_US, Gate::Open),
            (FAILOVER_US + 1, Gate::Waking),
        ] {
            let mut server = SimulatedServer::new();
            server.runs(2 * S, 10);
            assert_eq!(server.stops(S + 100_000, 10), Gate::Waking);
            server.now += next;
            assert_eq!(server.gate(), gate, "{next}");
        }
    }

    #[test]
    fn a_gap_that_nobody_asked_about_is_over_when_the_server_went_on() {
        let mut server = SimulatedServer::new();
        server.runs(2 * S, 10);
        server.stops(2 * S, 10);
        server.runs(2 * S, 10);
        assert_eq!(server.stops(2 * S, 10), Gate::Waking);
    }

    #[test]
    fn what_was_asked_of_replicas_stands_over_one_gap_after_the_other() {
        let mut server = SimulatedServer::new();
        server.runs(2 * S, 10);
        server.stops(S + 100_000, 10);
        let look = |server: &SimulatedServer, acknowledged: i64| {
            let replicas = || Replicas {
                offset: 10,
                acknowledged: vec![acknowledged],
                needed: 1,
            };
            let pulse = &server.pulse;
            pulse.gate(MachineUs(server.now), replicas, || ())
        };
        for _ in 0..2 {
            server.now += S + 100_000;
            assert_eq!(look(&server, 10), Gate::Waking);
            server.beat(10);
        }
        server.now += S + 100_000;
        assert_eq!(look(&server, 11), Gate::Open);
    }

    #[test]
    fn who_cannot_be_replaced_has_missed_nothing() {
        let mut server = SimulatedServer::new();
        server.pulse.replaceable.set(false);
        server.runs(2 * S, 10);
        assert_eq!(server.stops(60 * S, 10), Gate::Open);
        assert!(server.pulse.is_up_to_date(MachineUs(server.now)));
        server.pulse.can_be_replaced();
        assert!(!server.pulse.is_up_to_date(MachineUs(server.now)));
    }
}
