//! What is walked: three owners, one of them on two connections. `make test` walks the
//! small ones to the end and begins the others, `make soak` goes further, `make walk`
//! walks to the end what has one in reach.

use super::connections::{silent, silent_readers, wanted, wanted_readers};
use super::universe::Universe;
use super::{twins, walk};
use crate::lock::tests::family::model::{Mode, Place};
use crate::lock::tests::family::ops::Other;
use crate::lock::Rules;

pub const J: Place = (0, "j");
pub const K: Place = (0, "k");
pub const R: Place = (0, "r");
pub const ALL: [usize; 4] = [0, 1, 2, 3];
const RULES: Rules = Rules::DEFAULT;
const BLIND: Rules = Rules {
    detect_deadlocks: false,
    ..Rules::DEFAULT
};

/// One plain lock, watched or not.
fn one() -> Universe {
    let mut all = Universe::new("one lock", &[K]);
    for watch in [false, true] {
        all.asks(&ALL, &[K], Mode::Plain, watch);
    }
    all.gives_back(&ALL, K, Mode::Plain);
    all.all_are_the_same();
    all
}

/// One read/write lock that nobody watches, or takes for a plain one.
fn readers_and_writers() -> Universe {
    let mut all = Universe::new("readers and writers", &[R]);
    for mode in [Mode::Read, Mode::Write] {
        all.asks(&ALL, &[R], mode, false);
        all.gives_back(&ALL, R, mode);
    }
    all.all_are_the_same();
    all
}

/// One read/write lock, with all that can be asked of it.
fn one_in_every_mode() -> Universe {
    let mut all = Universe::new("one lock in every mode", &[R]);
    for mode in [Mode::Plain, Mode::Read, Mode::Write] {
        for watch in [false, true] {
            all.asks(&ALL, &[R], mode, watch);
        }
        all.gives_back(&ALL, R, mode);
    }
    all.all_are_the_same();
    all
}

/// Two plain locks, alone and as a pair, watched or not.
fn pair() -> Universe {
    let mut all = Universe::new("a pair of locks", &[J, K]);
    for watch in [false, true] {
        for keys in [&[J][..], &[K], &[J, K]] {
            all.asks(&ALL, keys, Mode::Plain, watch);
        }
    }
    for at in [J, K] {
        all.gives_back(&ALL, at, Mode::Plain);
    }
    all.are_the_same(0, 1);
    all.all_are_the_same();
    all
}

/// Two owners who read and write, and ask for new tokens for what they hold.
fn new_tokens() -> Universe {
    let mut all = Universe::new("new tokens for what is held", &[R]);
    for mode in [Mode::Read, Mode::Write] {
        all.asks(&[0, 2], &[R], mode, false);
        all.gives_back(&[0, 2], R, mode);
        all.renews_tokens(&[0, 2], R, mode);
    }
    all
}

/// Three plain locks, alone and in all sets of them.
fn sets() -> Universe {
    let mut all = Universe::new("all sets of three locks", &[J, K, R]);
    for keys in [&[J][..], &[K], &[R], &[J, K], &[J, R], &[K, R], &[J, K, R]] {
        all.asks(&ALL, keys, Mode::Plain, false);
    }
    for at in [J, K, R] {
        all.gives_back(&ALL, at, Mode::Plain);
    }
    all.are_the_same(0, 1);
    all.are_the_same(1, 2);
    all.all_are_the_same();
    all
}

/// A pair of plain locks and a read/write lock.
fn three() -> Universe {
    let mut all = Universe::new("three locks in every mode", &[J, K, R]);
    for keys in [&[J][..], &[K], &[J, K]] {
        all.asks(&ALL, keys, Mode::Plain, false);
    }
    for at in [J, K] {
        all.gives_back(&ALL, at, Mode::Plain);
    }
    for mode in [Mode::Read, Mode::Write] {
        all.asks(&ALL, &[R], mode, false);
        all.gives_back(&ALL, R, mode);
    }
    all.are_the_same(0, 1);
    all.all_are_the_same();
    all
}

/// Three locks, each in every mode, and all sets of them.
fn everything() -> Universe {
    let mut all = Universe::new("all of three locks in every mode", &[J, K, R]);
    for at in [J, K, R] {
        for mode in [Mode::Plain, Mode::Read, Mode::Write] {
            all.asks(&ALL, &[at], mode, false);
            all.gives_back(&ALL, at, mode);
        }
    }
    for keys in [&[J, K][..], &[J, R], &[K, R], &[J, K, R]] {
        all.asks(&ALL, keys, Mode::Plain, false);
    }
    all.are_the_same(0, 1);
    all.are_the_same(1, 2);
    all.all_are_the_same();
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
    for which in 0..3 {
        all.others(Other::DelLease(which, false));
        all.others(Other::GiveBack(which));
    }
    all.others(Other::Rename(R, K));
    all.others(Other::Rename(K, R));
    all
}

/// One lock that all wait for by QUEUE, again and again, with CANCEL; one of them on two
/// connections, of which each has a channel.
fn session() -> Universe {
    let mut all = Universe::new("sessions on one lock", &[K]);
    all.queues_once(&[0, 2, 3], K, false, 0);
    all.queues_once(&[1], K, false, 1);
    all.gives_back(&ALL, K, Mode::Plain);
    all.cancels(K);
    all.two_are_the_same();
    all
}

/// Two owners say it again; one of them waits a second time, and somebody else BLOCKs.
fn short_session() -> Universe {
    let mut all = Universe::new("a short session on one lock", &[K]);
    all.queues_once(&[0, 2], K, false, 0);
    all.queues(&[1], &[K], Mode::Plain, false);
    all.asks(&[3], &[K], Mode::Plain, false);
    all.gives_back(&ALL, K, Mode::Plain);
    all.cancels(K);
    all
}

/// With WATCHDOG or without, beside those who BLOCK.
fn sessions() -> Universe {
    let mut all = Universe::new("sessions beside those who BLOCK", &[K]);
    all.asks(&ALL, &[K], Mode::Plain, false);
    for watch in [false, true] {
        all.queues(&ALL, &[K], Mode::Plain, watch);
    }
    all.gives_back(&ALL, K, Mode::Plain);
    all.cancels(K);
    all.all_are_the_same();
    all
}

/// With connections that go deaf, and a server that is demoted.
fn deaf_sessions() -> Universe {
    let mut all = Universe::new("sessions that go deaf", &[K]);
    all.queues_once(&ALL, K, true, 0);
    all.gives_back(&ALL, K, Mode::Plain);
    all.go_deaf(&ALL);
    all.is_demoted();
    all.all_are_the_same();
    all
}

/// A pair of locks, alone and together.
fn sessions_on_a_pair() -> Universe {
    let mut all = Universe::new("sessions on a pair of locks", &[J, K]);
    for keys in [&[J][..], &[K], &[J, K]] {
        all.queues(&ALL, keys, Mode::Plain, false);
    }
    for at in [J, K] {
        all.gives_back(&ALL, at, Mode::Plain);
        all.cancels(at);
    }
    all.are_the_same(0, 1);
    all.all_are_the_same();
    all
}

/// Two permits of a lock, one or both of them at a time, watched or not.
fn permits() -> Universe {
    let mut all = Universe::new("permits", &[K]);
    all.asks_for_permits(&ALL, K, 1, true);
    for count in [1, 2] {
        all.asks_for_permits(&ALL, K, count, false);
    }
    all.gives_back(&ALL, K, Mode::Permits);
    all.all_are_the_same();
    all
}

/// With a limit that is lowered and raised.
fn limited() -> Universe {
    let mut all = Universe::new("permits with a limit that changes", &[K]);
    for count in [1, 2] {
        all.asks_for_permits(&[0, 2, 3], K, count, false);
    }
    all.gives_back(&[0, 2, 3], K, Mode::Permits);
    all.is_limited(K, &[1, 2, 3]);
    all.two_are_the_same();
    all
}

/// The same for two owners.
fn few_permits() -> Universe {
    let mut all = Universe::new("permits for two", &[K]);
    for count in [1, 2] {
        all.asks_for_permits(&[0, 2], K, count, false);
    }
    all.gives_back(&[0, 2], K, Mode::Permits);
    all.is_limited(K, &[1, 2, 3]);
    all
}

/// One lock held by permits, plain, and for reading.
fn all_kinds() -> Universe {
    let mut all = Universe::new("one lock of all three kinds", &[K]);
    all.asks_for_permits(&[0, 2, 3], K, 1, false);
    for mode in [Mode::Plain, Mode::Read] {
        all.asks(&[0, 2, 3], &[K], mode, false);
    }
    for mode in [Mode::Permits, Mode::Plain, Mode::Read] {
        all.gives_back(&[0, 2, 3], K, mode);
    }
    all.two_are_the_same();
    all
}

type Planned = (fn() -> Universe, Rules);

const WHOLE: [Planned; 16] = [
    (new_tokens, RULES),
    (limited, RULES),
    (all_kinds, RULES),
    (permits, RULES),
    (session, RULES),
    (sessions, RULES),
    (deaf_sessions, RULES),
    (pair, RULES),
    (pair, BLIND),
    (one_in_every_mode, RULES),
    (sets, RULES),
    (sets, BLIND),
    (three, RULES),
    (silent, RULES),
    (wanted, RULES),
    (wanted_readers, RULES),
];

/// Too much to be walked to the end.
const BEGUN: [Planned; 5] = [
    (three, BLIND),
    (everything, RULES),
    (others, RULES),
    (sessions_on_a_pair, RULES),
    (silent_readers, RULES),
];

fn all() -> impl Iterator<Item = (Universe, Rules)> {
    let planned = WHOLE.iter().chain(&BEGUN);
    planned.map(|(universe, rules)| (universe(), *rules))
}

/// So many states of each, nearest first.
fn walk_all(most: usize) {
    let seen = all().map(|(universe, rules)| walk(&universe, rules, most, 64).states);
    println!("{} states", seen.sum::<usize>());
}

#[test]
fn a_walk_over_one_lock_finds_no_broken_promise() {
    assert!(walk(&one(), RULES, usize::MAX, 8).whole);
}

#[test]
fn a_walk_over_readers_and_writers_finds_no_broken_promise() {
    assert!(walk(&readers_and_writers(), RULES, usize::MAX, 8).whole);
}

#[test]
fn a_walk_over_new_tokens_finds_no_broken_promise() {
    assert!(walk(&new_tokens(), RULES, usize::MAX, 8).whole);
}

#[test]
fn a_walk_over_sessions_finds_no_broken_promise() {
    assert!(walk(&short_session(), RULES, usize::MAX, 8).whole);
}

#[test]
fn a_walk_over_sessions_that_are_silent_finds_no_broken_promise() {
    assert!(walk(&silent(), RULES, 3_000, 8).states >= 3_000);
}

#[test]
fn a_walk_over_holders_who_want_to_know_finds_no_broken_promise() {
    assert!(walk(&wanted_readers(), RULES, 1_000, 8).states >= 1_000);
    assert!(walk(&wanted(), RULES, usize::MAX, 8).whole);
}

#[test]
fn a_walk_over_permits_finds_no_broken_promise() {
    assert!(walk(&few_permits(), RULES, usize::MAX, 8).whole);
    assert!(walk(&all_kinds(), RULES, usize::MAX, 8).whole);
}

#[test]
fn short_walks_over_all_find_no_broken_promise() {
    walk_all(600);
}

#[test]
fn states_that_are_taken_for_the_same_go_on_in_the_same_way() {
    twins_of_all(150, 16);
}

#[test]
#[ignore = "takes a minute, and needs --release"]
fn long_walks_find_no_two_states_taken_for_the_same_that_are_not() {
    twins_of_all(2_000, 4);
}

fn twins_of_all(most: usize, among: u64) {
    for (universe, rules) in all() {
        assert!(twins::check(&universe, rules, most, among) > 0);
    }
}

#[test]
#[ignore = "takes a minute, and needs --release"]
fn long_walks_over_all_find_no_broken_promise() {
    walk_all(30_000);
}

#[test]
#[ignore = "takes minutes, and needs --release"]
fn whole_walks_over_all_find_no_broken_promise() {
    for (universe, rules) in WHOLE {
        assert!(walk(&universe(), rules, usize::MAX, 64).whole);
    }
}
