//! What the model checker walks: small ones as a whole, the others as far as there
//! is time. The long form is run with `cargo test --release -- --ignored long_walks`.

use super::checker::{walk, Universe};
use super::model::{Mode, Place};
use super::ops::Other;
use crate::lock::Rules;

const J: Place = (0, "j");
const K: Place = (0, "k");
const R: Place = (0, "r");
const ALL: [usize; 4] = [0, 1, 2, 3];
const RULES: Rules = Rules::DEFAULT;
const BLIND: Rules = Rules {
    detect_deadlocks: false,
    ..Rules::DEFAULT
};

/// One plain lock, as a whole.
fn one() -> Universe {
    let mut all = Universe::new("one lock", &[K]);
    all.asks(&ALL, &[K], Mode::Plain, false);
    all.asks(&[1, 2], &[K], Mode::Plain, true);
    all.gives_back(&ALL, K, Mode::Plain);
    all
}

/// Two plain locks, alone and as a pair.
fn pair() -> Universe {
    let mut all = Universe::new("a pair of locks", &[J, K]);
    all.asks(&[0, 3], &[J], Mode::Plain, false);
    all.asks(&[0, 2], &[K], Mode::Plain, false);
    all.asks(&[1, 3], &[J, K], Mode::Plain, false);
    all.asks(&[2], &[J, K], Mode::Plain, true);
    for at in [J, K] {
        all.gives_back(&[0, 2, 3], at, Mode::Plain);
    }
    all
}

/// One read/write lock: nesting, watchdogs, and somebody who takes it for a plain
/// one.
fn shared() -> Universe {
    let mut all = Universe::new("a read/write lock", &[R]);
    all.asks(&[0, 2, 3], &[R], Mode::Read, false);
    all.asks(&[0, 1, 2], &[R], Mode::Write, false);
    all.asks(&[1], &[R], Mode::Read, true);
    all.asks(&[3], &[R], Mode::Write, true);
    all.asks(&[2], &[R], Mode::Plain, false);
    for mode in [Mode::Plain, Mode::Read, Mode::Write] {
        all.gives_back(&[0, 2, 3], R, mode);
    }
    all
}

/// Readers and writers who do not nest, as a whole.
fn readers_and_writers() -> Universe {
    let mut all = Universe::new("readers and writers", &[R]);
    for mode in [Mode::Read, Mode::Write] {
        all.asks(&[0, 2, 3], &[R], mode, false);
        all.gives_back(&[0, 2, 3], R, mode);
    }
    all
}

/// A pair and a read/write lock together.
fn both() -> Universe {
    let mut all = Universe::new("three keys", &[J, K, R]);
    all.asks(&[0, 2], &[J], Mode::Plain, false);
    all.asks(&ALL, &[K], Mode::Plain, false);
    all.asks(&[1, 2, 3], &[J, K], Mode::Plain, false);
    all.asks(&[3], &[K, R], Mode::Plain, true);
    for mode in [Mode::Read, Mode::Write] {
        all.asks(&ALL, &[R], mode, false);
        all.gives_back(&ALL, R, mode);
    }
    for at in [J, K, R] {
        all.gives_back(&ALL, at, Mode::Plain);
    }
    all
}

/// Others come between.
fn others() -> Universe {
    let mut all = Universe::new("others come between", &[K, R]);
    all.asks(&[0, 2], &[K], Mode::Plain, true);
    all.asks(&[1, 3], &[K, R], Mode::Plain, false);
    for mode in [Mode::Read, Mode::Write] {
        all.asks(&[0, 2], &[R], mode, false);
        all.asks(&[1], &[R], mode, true);
        all.gives_back(&[0, 1, 2], R, mode);
        all.others(Other::Take(R, "c", mode, 150));
    }
    all.gives_back(&[0, 1, 2], K, Mode::Plain);
    all.others(Other::Take(K, "b", Mode::Plain, 150));
    all.others(Other::Del(K));
    all.others(Other::Del(R));
    all.others(Other::Set(K, Some(50)));
    all.others(Other::DelLease(0, false));
    all.others(Other::GiveBack(0));
    all.others(Other::Rename(R, K));
    all.others(Other::Rename(K, R));
    all
}

type Planned = (fn() -> Universe, Rules);

const PLAN: [Planned; 6] = [
    (pair, RULES),
    (pair, BLIND),
    (shared, RULES),
    (shared, BLIND),
    (both, RULES),
    (others, RULES),
];

#[test]
fn a_walk_over_one_lock_finds_no_broken_promise() {
    assert!(walk(&one(), RULES, usize::MAX, 8).whole);
}

#[test]
fn a_walk_over_readers_and_writers_finds_no_broken_promise() {
    assert!(walk(&readers_and_writers(), RULES, usize::MAX, 8).whole);
}

#[test]
fn short_walks_over_all_find_no_broken_promise() {
    println!("{} states", walk_all(1_000));
}

#[test]
#[ignore = "takes a minute, and needs --release"]
fn long_walks_over_all_find_no_broken_promise() {
    println!("{} states", walk_all(50_000));
}

/// So many states of each, two at a time.
fn walk_all(most: usize) -> usize {
    let walk_some = |which: usize| {
        let plan = PLAN.iter().skip(which).step_by(2);
        let seen = plan.map(|(universe, rules)| walk(&universe(), *rules, most, 64));
        seen.map(|seen| seen.states).sum::<usize>()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| walk_some(1));
        walk_some(0) + other.join().unwrap()
    })
}
