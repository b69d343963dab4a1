//! The turns of those who wait by subscription, beside any crowd of waiters.

use proptest::prelude::*;

use super::shell::{by, key, Shell};
use crate::lock::memory::Value;
use crate::lock::{Cause, Notice, Outcome, Verdict, WaiterId, WakeTarget};

/// Owners in the queue.
const OWNERS: usize = 16;

const TURN_MS: i64 = 20;

/// A crowd of native clients, and one that subscribes.
struct Crowd {
    shell: Shell,
    listens: bool,
    /// Native grants since the subscriber listens, or had its last turn.
    grants: usize,
    in_vain: u32,
    has_place: bool,
    waiting: Vec<(WaiterId, String)>,
}

impl Crowd {
    fn new() -> Self {
        let mut shell = Shell::new();
        shell.core.rules.redisson_yield_us = Some(TURN_MS * 1000);
        Self {
            shell,
            listens: false,
            grants: 0,
            in_vain: 0,
            has_place: false,
            waiting: Vec::new(),
        }
    }

    fn is_turn(&self) -> bool {
        self.shell.core.has_turn(0, b"k")
    }

    fn holder(&mut self) -> Option<String> {
        Some(self.shell.held()?.0)
    }

    /// What the server does after each step, and what must hold then.
    fn after(&mut self) {
        let was_turn = self.is_turn();
        self.shell.find_subscribers(self.listens);
        let told = std::mem::take(&mut self.shell.told);
        for notice in told {
            if let Notice::Answer {
                waiter, outcome, ..
            } = notice
            {
                assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
                let at = self.waiting.iter().position(|(id, _)| *id == waiter);
                let (_, owner) = self.waiting.remove(at.unwrap());
                assert_eq!(self.holder(), Some(owner));
                self.grants += 1;
            } else if let Notice::Wake { target, .. } = notice {
                assert_eq!(target, WakeTarget::One, "it is a plain lock");
            }
        }
        let is_turn = self.is_turn();
        if is_turn {
            assert_eq!(self.holder(), None, "a turn, and the lock is held");
            self.grants = 0;
        }
        if was_turn && !is_turn && self.holder().is_none_or(|owner| owner != "out") {
            self.in_vain += 1;
        }
        let has_place = self.shell.core.subscribers.place(&key(0, "k")).is_some();
        if has_place != self.has_place {
            self.has_place = has_place;
            self.grants = 0;
        }
        // It need not use that the lock is free, and is discovered when it is left
        // free the next time, or handed on for the fourth.
        let most = match (has_place, self.in_vain) {
            (true, _) => 4,
            (false, 0) => 5,
            (false, n) => 8_usize.saturating_mul(1 << n.min(3)) - 8 + 5,
        };
        if self.listens {
            assert!(
                self.grants <= most,
                "{} grants, place {has_place}, {} in vain",
                self.grants,
                self.in_vain
            );
        }
        let free = self.holder().is_none();
        assert!(
            !free || is_turn || self.waiting.is_empty(),
            "a free lock, and some wait"
        );
    }

    fn native(&mut self, owner: usize, blocks: bool) {
        let owner = format!("w{owner}");
        let idle = self.waiting.iter().all(|(_, other)| *other != owner)
            && self.holder().as_ref() != Some(&owner);
        if !idle {
            return;
        }
        let turn = self.is_turn();
        let request = by(&owner).lease(1_000_000);
        let verdict = self
            .shell
            .acquire(if blocks { request.block(0) } else { request });
        match verdict.unwrap() {
            Verdict::Granted(_) => {
                assert!(!turn, "a turn is not for {owner}");
                self.grants += 1;
            }
            Verdict::Waits(id) => self.waiting.push((id, owner)),
            Verdict::Refused => assert!(!blocks),
        }
        self.after();
    }

    fn release(&mut self) {
        match self.holder().as_deref() {
            Some("out") => {
                self.shell.ks.keys.remove(&key(0, "k"));
                self.shell.changed(&key(0, "k"), Cause::Removed);
                self.shell.read_notes();
            }
            Some(owner) => assert_eq!(self.shell.release(owner), Ok(0)),
            None => return,
        }
        self.after();
    }

    fn outsider_tries(&mut self) {
        if self.listens && self.holder().is_none() {
            let was_turn = self.is_turn();
            let hash = [(b"out".to_vec(), b"1".to_vec())].into();
            let end = self.shell.now.wall_ms().plus_ms(1_000_000);
            let value = (Value::Hash(hash), Some(end));
            self.shell.ks.keys.insert(key(0, "k"), value);
            self.shell.changed(&key(0, "k"), Cause::Unknown);
            self.shell.read_notes();
            if was_turn {
                self.in_vain = 0;
            }
            self.grants = 0;
            self.after();
        }
    }

    fn pass(&mut self, ms: i64) {
        self.shell.pass_and_tick(ms);
        self.after();
        // It was looked at, and is again later: the timer does not fire without a pause.
        let next = self.shell.core.next_turn();
        assert!(next.is_none_or(|at| at > self.shell.now.mono), "{next:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Native(usize, bool),
    Release,
    Listen(bool),
    Try,
    Pass(i64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (0..OWNERS, prop::bool::weighted(0.9)).prop_map(|(owner, blocks)| Op::Native(owner, blocks)),
        8 => Just(Op::Release),
        1 => any::<bool>().prop_map(Op::Listen),
        2 => Just(Op::Try),
        2 => (0_i64..30).prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::runs(600), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_starves_and_nothing_is_stuck(ops in ops()) {
        let mut crowd = Crowd::new();
        for op in ops {
            match op {
                Op::Native(owner, blocks) => crowd.native(owner, blocks),
                Op::Release => crowd.release(),
                Op::Listen(on) => {
                    crowd.listens = on;
                    crowd.grants = 0;
                }
                Op::Try => crowd.outsider_tries(),
                Op::Pass(ms) => crowd.pass(ms),
            }
        }
        // Everybody who waits is served in the end.
        crowd.listens = false;
        for _ in 0..4 * OWNERS {
            crowd.release();
            crowd.pass(TURN_MS);
        }
        prop_assert_eq!(crowd.waiting.len(), 0);
        prop_assert_eq!(crowd.holder(), None);
        // Once it is seen that nobody listens, nothing is remembered.
        crowd.native(0, false);
        crowd.release();
        prop_assert!(crowd.shell.core.is_idle());
    }
}
