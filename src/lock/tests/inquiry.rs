//! Cycles that are too long to be found on the spot are found in slices, and nothing else is
//! refused for one.

use std::collections::{BTreeMap, BTreeSet};

use super::shell::{answers, by, key, Shell};
use crate::lock::deadlock::{Graph, Steps};
use crate::lock::{Core, Mode, Now, Outcome, Owner, Refusal, WaiterId};

/// The inquiry comes to its end; the leases stand meanwhile.
fn find_out(s: &mut Shell) -> usize {
    let mut turns = 0;
    while s.core.next_inquiry().is_some() {
        s.pass_us(0, 1_000_000_000);
        s.tick();
        turns += 1;
        assert!(turns < 100_000, "it comes to an end");
    }
    turns
}

fn refused(s: &mut Shell) -> Vec<WaiterId> {
    let answers = s.answers().into_iter();
    let refused = answers.filter_map(|(id, outcome)| match outcome {
        Outcome::Refused(Refusal::Deadlock { .. }) => Some(id),
        _ => None,
    });
    refused.collect()
}

/// Each holds a lock and waits for the next one's.
fn chain(s: &mut Shell, count: usize) -> Vec<WaiterId> {
    for n in 0..=count {
        s.get(by(&format!("o{n}")).on(&format!("k{n}")));
    }
    let waits = (0..count).map(|n| {
        let (owner, next) = (format!("o{n}"), format!("k{}", n + 1));
        s.wait(by(&owner).on(&next))
    });
    waits.collect()
}

#[test]
fn a_ring_of_very_many_is_found_in_slices() {
    let count = if cfg!(miri) { 200 } else { 20_000 };
    let mut s = Shell::new();
    s.piece_us = 2000;
    chain(&mut s, count);
    s.told.clear();
    let last = s.wait(by(&format!("o{count}")).on("k0"));
    assert!(find_out(&mut s) > count / 1000, "each slice is short");
    assert_eq!(refused(&mut s), [last]);
    assert_eq!(s.core.waiting(), count);
    // All has been given back.
    assert!(s.core.inquiry.is_at_rest());
}

#[test]
fn who_closes_a_ring_while_others_are_looked_at_is_refused() {
    let mut s = Shell::new();
    s.piece_us = 2000;
    let count = 2000;
    chain(&mut s, count);
    s.get(by("late").on("own"));
    s.wait(by("late").on("k0"));
    s.wait(by("other").on("own"));
    s.tick();
    s.told.clear();
    let last = s.wait(by(&format!("o{count}")).on("k0"));
    find_out(&mut s);
    assert_eq!(refused(&mut s), [last]);
}

#[test]
fn one_more_behind_very_many_is_not_refused() {
    let mut s = Shell::new();
    let count = 2000;
    chain(&mut s, count);
    s.told.clear();
    s.get(by("late").on("own"));
    s.wait(by("late").on("k0"));
    s.wait(by("other").on("own"));
    find_out(&mut s);
    assert_eq!(refused(&mut s), []);
    assert_eq!(s.core.waiting(), count + 2);
}

#[test]
fn a_ring_that_somebody_leaves_meanwhile_is_none() {
    let mut s = Shell::new();
    let count = 2000;
    let waits = chain(&mut s, count);
    s.piece_us = 2000;
    s.told.clear();
    let last = s.wait(by(&format!("o{count}")).on("k0"));
    for _ in 0..5 {
        s.tick();
    }
    crate::lock::leave(&mut s.core, waits[count / 2]);
    find_out(&mut s);
    assert_eq!(refused(&mut s), []);
    assert!(s.core.queues.get(last).is_some());
}

/// Who waits for whom, pair by pair.
fn waits_for(core: &Core, now: Now) -> BTreeMap<Owner, BTreeSet<Owner>> {
    let graph = Graph::new(core, now);
    let waiters: Vec<_> = core.queues.iter().collect();
    let owners: BTreeSet<&Owner> = waiters.iter().map(|(_, w)| &w.want.owner).collect();
    let mut all: BTreeMap<Owner, BTreeSet<Owner>> = BTreeMap::new();
    for (id, waiter) in &waiters {
        for key in &waiter.keys {
            let waits = |other: &&&Owner| graph.waits_for(*id, key, other);
            let others = owners.iter().filter(waits).map(|other| (*other).clone());
            all.entry(waiter.want.owner.clone())
                .or_default()
                .extend(others);
        }
    }
    all
}

/// Those who wait for themselves, past others.
fn in_cycles(core: &Core, now: Now) -> BTreeSet<Owner> {
    let edges = waits_for(core, now);
    let reaches_itself = |owner: &&Owner| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![*owner]);
        while let Some(next) = todo.pop() {
            for other in edges.get(next).into_iter().flatten() {
                if seen.insert(other) {
                    todo.push(other);
                }
            }
        }
        seen.contains(owner)
    };
    edges.keys().filter(reaches_itself).cloned().collect()
}

/// Numbers that look random, the same ones each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }
}

const OWNERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const NAMES: [&str; 8] = ["j", "k", "l", "r", "s", "t", "j k", "r l"];

fn mode_of(name: &str, dice: &mut Dice) -> Mode {
    match name {
        "r" | "s" | "t" if dice.below(3) > 0 => Mode::Read,
        "r" | "s" | "t" => Mode::Write,
        _ => Mode::Exclusive,
    }
}

fn step(s: &mut Shell, dice: &mut Dice) {
    let owner = OWNERS[dice.below(OWNERS.len())];
    let name = NAMES[dice.below(NAMES.len())];
    let mode = mode_of(name, dice);
    match dice.below(8) {
        0..=4 => {
            let request = by(owner).on(name).block(0).lease(1_000_000);
            let _ = s.acquire(super::request::Request { mode, ..request });
        }
        // Who waits for several locks, one of which it holds, and lets go of that one is not
        // looked at: it waits behind others then for whom it did not wait before.
        5 | 6
            if s.core
                .queues
                .first_of(owner.as_bytes(), &key(0, name))
                .is_none() =>
        {
            let _ = s.release_as(&key(0, name), owner, mode, false);
        }
        _ => {
            let waiting: Vec<WaiterId> = s.core.queues.iter().map(|(id, _)| id).collect();
            if !waiting.is_empty() {
                let id = waiting[dice.below(waiting.len())];
                crate::lock::leave(&mut s.core, id);
            }
        }
    }
    s.read_notes();
}

/// With no steps on the spot all is found out by the inquiry.
fn run(seed: u64, piece_us: i64) -> usize {
    let mut dice = Dice(seed);
    let mut s = Shell::new();
    s.core.inquiry.steps = Steps::of(0);
    s.piece_us = piece_us;
    let mut found = 0;
    for _ in 0..120 {
        step(&mut s, &mut dice);
        s.told.clear();
        while s.core.next_inquiry().is_some() {
            let before = s.core.clone();
            s.pass_us(0, 1_000_000_000);
            s.tick();
            let told = std::mem::take(&mut s.told);
            for (id, outcome) in answers(&told) {
                let Outcome::Refused(Refusal::Deadlock { cycle }) = outcome else {
                    continue;
                };
                found += 1;
                let waiter = before.queues.get(id).expect("it waited");
                let owner = &waiter.want.owner;
                assert_eq!(cycle[0].waits, *owner);
                assert_eq!(cycle.last().map(|link| &link.for_), Some(owner));
            }
        }
        let left = in_cycles(&s.core, s.now);
        assert!(left.is_empty(), "seed {seed}: {left:?} wait for ever");
        s.core.check();
    }
    found
}

#[test]
fn nobody_is_left_in_a_cycle() {
    let seeds = 1..=u64::from(super::runs(100));
    let found: usize = seeds.map(|seed| run(seed * 0x9E37_79B9, 0)).sum();
    assert!(cfg!(miri) || found > 50, "{found} cycles");
}

/// What is decided on the spot and what the inquiry finds go by the same graph.
#[test]
fn on_the_spot_nobody_is_left_in_one_either() {
    for seed in 1..=u64::from(super::runs(100)) {
        let mut dice = Dice(seed * 0x85EB_CA6B);
        let mut s = Shell::new();
        for _ in 0..120 {
            step(&mut s, &mut dice);
            find_out(&mut s);
            let left = in_cycles(&s.core, s.now);
            assert!(left.is_empty(), "seed {seed}: {left:?} wait for ever");
        }
    }
}
