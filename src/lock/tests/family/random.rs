//! Random runs: after each step the core must have done what the model did, and
//! what is promised of every lock must hold, whatever the model says.

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use super::compare::compare;
use super::model::Place;
use super::ops::{Op, Other, Whose, SEATS};
use super::promises::Promises;
use super::steps::{steps, Steps};
use super::world::World;
use crate::lock::tests::runs;
use crate::lock::Rules;

/// The same runs each time, from a few seeds; PROPTEST_RNG_SEED asks for those of
/// another one (`make explore`).
fn run_all(rules: Rules) {
    run_each(rules, |ops| {
        let mut run = Run::new(rules);
        let says = |op: &&Op| !matches!(op, Op::Heartbeat(..));
        ops.0.iter().filter(says).for_each(|op| run.step(op));
        run.end();
    });
}

fn run_each(rules: Rules, run: impl Fn(Steps)) {
    let default = ProptestConfig::default();
    let seeds = match default.rng_seed {
        RngSeed::Random => SEEDS.collect(),
        RngSeed::Fixed(asked_for) => vec![asked_for],
    };
    for seed in seeds {
        let config = ProptestConfig {
            cases: runs(300),
            failure_persistence: None,
            max_shrink_iters: 20_000,
            rng_seed: RngSeed::Fixed(seed),
            ..ProptestConfig::default()
        };
        let found = TestRunner::new(config).run(&steps(70), |ops| {
            run(ops);
            Ok(())
        });
        if let Err(failure) = found {
            panic!("seed {seed}, {rules:?}: {failure}");
        }
    }
}

const SEEDS: Range<u64> = 1..4;

/// Places are kept for no longer than many a run takes.
const RULES: Rules = Rules {
    keep_place: Some(400),
    ..Rules::DEFAULT
};

#[test]
fn the_core_does_what_the_model_does() {
    run_all(RULES);
}

#[test]
fn it_does_so_without_deadlock_detection() {
    run_all(Rules {
        detect_deadlocks: false,
        ..RULES
    });
}

#[test]
fn it_does_so_with_a_longest_watch() {
    run_all(Rules {
        watchdog_max: Some(150),
        ..RULES
    });
}

/// Connections say that they are alive, and are silent then. (Elsewhere none does: then the timer
/// may be late.)
#[test]
fn it_does_so_where_sessions_fall_silent() {
    for detect_deadlocks in [true, false] {
        let rules = Rules {
            detect_deadlocks,
            ..RULES
        };
        run_each(rules, |ops| run(&ops, rules));
    }
}

/// Where nobody hears events of its own, what others do to a plain lock that is only held
/// goes unheard, and a look finds it out. Left out is what a look cannot tell: why a key
/// went, and where to. Where it has another end, its token is not known any more.
#[test]
fn it_does_so_where_it_is_not_told() {
    let rules = Rules {
        observes_all: false,
        ..RULES
    };
    run_where_it_is_not_told(rules);
}

/// Where nobody gets events either, plain locks go the short way as far as they can.
#[test]
fn it_does_so_by_the_short_way() {
    let rules = Rules {
        emits_events: false,
        ..RULES
    };
    run_all(rules);
    run_where_it_is_not_told(Rules {
        observes_all: false,
        ..rules
    });
}

/// Two databases are exchanged again and again, and as many wait in the one as in the other.
#[test]
fn it_does_so_where_databases_are_exchanged() {
    run_each(RULES, |ops| {
        let mut run = Run::new(RULES);
        for mut op in ops.0 {
            match &mut op {
                Op::Acquire(call) => {
                    let db = i32::from(call.lease % 2 == 0);
                    call.keys.iter_mut().for_each(|place| place.0 = db);
                }
                Op::Other { what, late } if !matches!(what, Other::Take(..)) => {
                    (*what, *late) = (Other::Swap, true);
                }
                _ => {}
            }
            run.step(&op);
        }
        run.end();
    });
}

fn run_where_it_is_not_told(rules: Rules) {
    run_each(rules, |ops| {
        let mut run = Run::new(rules);
        let can_be_seen = |op: &&Op| {
            !matches!(
                op,
                Op::Heartbeat(..)
                    | Op::Other {
                        what: Other::Evict(_) | Other::Rename(..),
                        ..
                    }
            )
        };
        ops.0.iter().filter(can_be_seen).for_each(|op| run.step(op));
        run.end();
    });
}

pub fn run(ops: &Steps, rules: Rules) {
    let mut run = Run::new(rules);
    for op in &ops.0 {
        run.step(op);
    }
    run.end();
}

#[derive(Clone)]
pub struct Run {
    pub world: World,
    pub promises: Promises,
}

impl Run {
    fn new(rules: Rules) -> Self {
        let places: Vec<Place> = World::places().collect();
        Self::start(rules, &places)
    }

    pub fn start(rules: Rules, places: &[Place]) -> Self {
        Self {
            world: World::new(rules, places),
            promises: Promises::default(),
        }
    }

    pub fn step(&mut self, op: &Op) {
        self.promises.before(&self.world);
        if self.world.catch_up(op) {
            self.look_at_all();
        }
        self.world.act(op);
        // Also where something is due yet.
        self.world.shell.core.check();
        if self.world.slot_stays() {
            self.look_at_all();
        }
    }

    /// Whoever lost a watchdog hold is sent away then.
    fn look_at_all(&mut self) {
        self.look();
        for client in std::mem::take(&mut self.world.model.lost) {
            (self.world.replies, self.world.asked) = (None, None);
            self.world.renamed = None;
            self.world.close(client);
            self.look();
        }
    }

    fn look(&mut self) {
        let told = std::mem::take(&mut self.world.shell.told);
        self.promises.after(&self.world, &told);
        compare(&mut self.world, &told);
    }

    /// All go home: nothing may be left behind.
    fn end(&mut self) {
        for seat in 0..SEATS {
            self.step(&Op::Close(seat));
        }
        self.step(&Op::Confirm);
        for place in self.world.places.clone() {
            let (what, late) = (Other::Del(place), false);
            self.step(&Op::Other { what, late });
            // The fields of readers that died are no lock to the model.
            self.world.shell.del(place, false);
        }
        self.world.shell.read_notes();
        self.look();
        let core = &self.world.shell.core;
        assert!(core.is_idle(), "remembered: {:?}", core.locks.keys());
        assert!(core.in_flight.grants.is_empty() && core.queues.is_empty());
        assert_eq!((core.next_expiry(), core.next_timeout()), (None, None));
    }

    /// All who hold let go, again and again: then nobody may wait any more.
    pub fn drain(&mut self) {
        let mut rounds = 0;
        while let Some((place, slot)) = self.world.model.keys.first_key_value() {
            rounds += 1;
            assert!(rounds < 100, "it does not end");
            let (place, ends) = (*place, slot.ends);
            self.step(&Op::Confirm);
            let hold = self.world.model.holds_at(place).next().copied();
            let Some(hold) = hold else {
                let us = (ends + 1 - self.world.model.now_ms()) * 1000;
                let (cycle, fires) = (false, true);
                self.step(&Op::Pass { us, cycle, fires });
                continue;
            };
            let whose = Whose {
                held: None,
                at: hold.place,
                owner: hold.owner,
                mode: hold.mode,
                // Nobody waits there.
                seat: SEATS - 1,
                own_seat: false,
            };
            self.step(&Op::Release {
                whose,
                by: None,
                only: None,
            });
        }
        self.step(&Op::Confirm);
        let waiters = &self.world.shell.core.queues;
        assert!(
            waiters.is_empty(),
            "nobody holds, and some wait: {waiters:?}"
        );
        assert!(self.world.shell.core.is_idle());
    }
}
