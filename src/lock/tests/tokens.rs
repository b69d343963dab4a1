//! Fencing tokens: strictly rising for each lock, over all locks by the clock, and none that
//! the commands themselves refuse, whatever others write to counters.

use proptest::prelude::*;

use super::shell::{by, key, Shell};
use crate::lock::memory::{counter, Value};
use crate::lock::{Fence, Mode, Outcome, Refusal, Token, Verdict, WallMs};

/// What the commands take: what a double counts exactly.
const MOST: i64 = 9_007_199_254_740_991;
const DAY_US: i64 = 86_400_000_000;

const NAMES: [&str; 4] = ["k", "x", "y", "k x y"];

fn set(s: &mut Shell, name: &str, value: Value) {
    s.ks.keys.insert(counter(&key(0, name)), (value, None));
}

fn told(s: &mut Shell, name: &str) -> Option<(Value, Option<WallMs>)> {
    s.ks.keys.get(&counter(&key(0, name))).cloned()
}

fn fence(s: &mut Shell, name: &str, owner: &str, fence: Fence) -> Result<Option<Token>, Refusal> {
    let how = (Mode::Exclusive, 1_000_000_000);
    s.renew_to(&key(0, name), owner, how, Some(fence))
}

#[derive(Clone, Debug)]
enum Op {
    /// One of [`NAMES`], by an owner that holds nothing.
    Take(usize),
    Release(usize),
    /// A counter is overwritten by somebody.
    Set(usize, Count),
    Delete(usize),
    Fence(usize, Count),
    /// RENEW … TOKEN by who holds it.
    Renew(usize),
    /// The clock goes on, or is set back.
    Clock(i64),
    /// `rlock.fencing`.
    Counts(bool),
}

#[derive(Clone, Copy, Debug)]
enum Count {
    Small(i64),
    /// So far from the clock.
    Now(i64),
    /// So far from the greatest.
    Most(i64),
    Text,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let count = prop_oneof![
        (-5..5_i64).prop_map(Count::Small),
        prop_oneof![-1000..1000_i64, Just(DAY_US / 2), Just(2 * DAY_US)].prop_map(Count::Now),
        (-4..2_i64).prop_map(Count::Most),
        Just(Count::Text),
    ];
    let clock = prop_oneof![0..5_i64, -1_000_000..1_000_000_i64, Just(DAY_US / 48)];
    let op = prop_oneof![
        6 => (0..4_usize).prop_map(Op::Take),
        6 => (0..3_usize).prop_map(Op::Release),
        2 => (0..3_usize, count.clone()).prop_map(|(at, count)| Op::Set(at, count)),
        2 => (0..3_usize).prop_map(Op::Delete),
        2 => (0..3_usize, count).prop_map(|(at, count)| Op::Fence(at, count)),
        4 => (0..3_usize).prop_map(Op::Renew),
        2 => clock.prop_map(Op::Clock),
        1 => any::<bool>().prop_map(Op::Counts),
    ];
    proptest::collection::vec(op, 1..60)
}

/// What docs/guarantees.md says of tokens.
#[derive(Default)]
struct Model {
    /// The last by the clock.
    row: i64,
    /// The greatest that each lock has had; 0: it begins anew.
    had: [i64; 3],
    /// Who holds each.
    held: [Option<(String, i64)>; 3],
    counts: bool,
    owners: usize,
}

fn run(ops: Vec<Op>) {
    let mut s = Shell::new();
    let mut m = Model::default();
    for op in ops {
        match op {
            Op::Take(at) => take(&mut s, &mut m, at),
            Op::Release(at) => {
                if let Some((owner, _)) = m.held[at].take() {
                    s.release_on(&key(0, NAMES[at]), &owner, true).unwrap();
                }
            }
            Op::Set(at, count) => {
                let value = number(&s, count).map_or(Value::Text, Value::Number);
                set(&mut s, NAMES[at], value);
            }
            Op::Delete(at) => {
                s.ks.keys.remove(&counter(&key(0, NAMES[at])));
            }
            Op::Fence(at, count) => raise(&mut s, &mut m, at, count),
            Op::Renew(at) => renew(&mut s, &mut m, at),
            Op::Clock(us) => s.pass_us(us, us.max(0)),
            Op::Counts(counts) => {
                m.counts = counts;
                s.core.rules.counts = counts;
            }
        }
    }
}

fn number(s: &Shell, count: Count) -> Option<i64> {
    match count {
        Count::Small(number) => Some(number),
        Count::Now(off) => Some(s.now.wall.0 + off),
        Count::Most(off) => Some(MOST + off),
        Count::Text => None,
    }
}

/// The locks of a request, and what the counter of each says; `Err`: one refuses.
fn counters(s: &mut Shell, at: usize) -> (Vec<usize>, Result<Vec<Option<i64>>, ()>) {
    let locks: Vec<usize> = if at == 3 { vec![0, 1, 2] } else { vec![at] };
    let said = locks.iter().map(|at| match told(s, NAMES[*at]) {
        None => Ok(None),
        Some((Value::Number(number), _)) if number < MOST => Ok(Some(number)),
        Some(_) => Err(()),
    });
    let said = said.collect();
    (locks, said)
}

fn take(s: &mut Shell, m: &mut Model, at: usize) {
    m.owners += 1;
    let owner = format!("o{}", m.owners);
    let (locks, said) = counters(s, at);
    let before = s.ks.keys.clone();
    let is_free = locks.iter().all(|at| m.held[*at].is_none());
    let found = s.acquire(by(&owner).on(NAMES[at]).lease(1_000_000_000));
    let Ok(said) = said.map_err(|()| assert!(found.is_err() || !is_free, "{found:?}")) else {
        assert_eq!(s.ks.keys, before, "a refused request wrote");
        return;
    };
    let Ok(Verdict::Granted(token)) = found else {
        assert!(!is_free, "{found:?}");
        assert_eq!(s.ks.keys, before, "a refused request wrote");
        return;
    };
    assert!(is_free);
    let above = said.iter().flatten().copied().max();
    given(s, m, token.0, &locks, above.unwrap_or(0));
    for (at, said) in locks.into_iter().zip(said) {
        m.held[at] = Some((owner.clone(), token.0));
        is_counted(s, m, (at, said), token.0);
    }
}

/// A token is given for these locks: the next by the clock, or above this and all that they had.
fn given(s: &Shell, m: &mut Model, token: i64, locks: &[usize], above: i64) {
    let by_clock = s.now.wall.0.max(m.row + 1);
    let had = locks.iter().map(|at| m.had[*at]);
    let expected = by_clock.max(had.max().unwrap_or(0).max(above) + 1);
    assert_eq!(token, expected, "the token of {locks:?}");
    assert!(token <= MOST);
    if token == by_clock {
        m.row = by_clock;
    }
    for at in locks {
        m.had[*at] = if token == MOST { 0 } else { token };
    }
}

/// It is written to the counter, where there was one or is to be.
fn is_counted(s: &mut Shell, m: &Model, (at, said): (usize, Option<i64>), token: i64) {
    let kept = (m.counts || said.is_some()).then_some(Value::Number(token));
    assert_eq!(told(s, NAMES[at]).map(|(value, _)| value), kept);
}

fn renew(s: &mut Shell, m: &mut Model, at: usize) {
    let Some((owner, had)) = m.held[at].clone() else {
        return;
    };
    let (_, said) = counters(s, at);
    let before = s.ks.keys.clone();
    let found = fence(s, NAMES[at], &owner, Fence::New);
    match said {
        Ok(said) if had < MOST => {
            let token = found.unwrap().unwrap().0;
            assert!(token > had, "{token} after {had}");
            given(s, m, token, &[at], said[0].unwrap_or(0).max(had));
            m.held[at] = Some((owner, token));
            is_counted(s, m, (at, said[0]), token);
        }
        _ => {
            assert!(found.is_err(), "{found:?}");
            assert_eq!(s.ks.keys, before, "a refused request wrote");
        }
    }
}

fn raise(s: &mut Shell, m: &mut Model, at: usize, count: Count) {
    let Some(brought) = number(s, count).filter(|number| (1..=MOST).contains(number)) else {
        return;
    };
    let Some((owner, token)) = m.held[at].clone() else {
        return;
    };
    let (_, said) = counters(s, at);
    let before = s.ks.keys.clone();
    let found = fence(s, NAMES[at], &owner, Fence::Raise(Token(brought)));
    let said = said.map(|said| said.into_iter().flatten().max().unwrap_or(0));
    let far = brought > m.row.max(s.now.wall.0 + DAY_US);
    let new = |said: i64| brought > said.max(token).max(m.had[at]);
    match said {
        Ok(said) if !(far && new(said)) => {
            let expected = brought.max(token).max(said);
            assert_eq!(found, Ok(Some(Token(expected))));
            m.had[at] = if expected == MOST {
                0
            } else {
                m.had[at].max(expected)
            };
        }
        _ => {
            assert!(found.is_err(), "{found:?}");
            assert_eq!(s.ks.keys, before, "a refused request wrote");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: super::runs(2000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_locks_tokens_rise_and_no_counter_takes_those_of_others(ops in ops()) {
        run(ops);
    }
}

#[test]
fn a_waiter_that_a_spent_counter_refuses_leaves_and_the_next_is_looked_at() {
    let mut s = Shell::new();
    s.get(by("a"));
    let first = s.wait(by("b").on("k"));
    let other = s.wait(by("c").on("k"));
    set(&mut s, "k", Value::Number(MOST));
    s.told.clear();
    s.release("a").unwrap();
    let spent = Outcome::Refused(Refusal::CounterSpent { key: key(0, "k") });
    let expected = [(first, spent.clone()), (other, spent)];
    assert_eq!(s.answers(), expected);
    assert_eq!(s.held(), None);
}

#[test]
fn a_lock_that_is_renamed_takes_along_how_far_it_was_ahead() {
    let mut s = Shell::new();
    set(&mut s, "k", Value::Number(MOST - 100));
    let token = s.get(by("a").lease(1_000_000));
    let (from, to) = (key(0, "k"), key(0, "to"));
    let hash = s.ks.keys.remove(&from).unwrap();
    s.ks.keys.insert(to.clone(), hash);
    s.renamed(&from, &to);
    s.read_notes();
    s.release_on(&to, "a", true).unwrap();
    assert_eq!(s.get(by("b").on("to")), token.next());
}

/// A user that may write counters makes the server remember no more of them than so many.
#[test]
fn what_is_remembered_has_a_bound() {
    let mut s = Shell::new();
    let take = |s: &mut Shell, name: &str| {
        let token = s.get(by("a").on(name));
        s.release_on(&key(0, name), "a", true).unwrap();
        token
    };
    let lift = |s: &mut Shell, name: &str| {
        set(s, name, Value::Number(MOST - 10));
        let token = take(s, name);
        s.ks.keys.remove(&counter(&key(0, name)));
        token
    };
    let last = lift(&mut s, "first");
    for n in 0..2000 {
        lift(&mut s, &format!("n{n}"));
    }
    assert_eq!(take(&mut s, "first"), last.next());
    for n in 0..10_000 {
        lift(&mut s, &format!("m{n}"));
    }
    assert!(take(&mut s, "first") < last, "it was forgotten");
    assert!(s.core.tokens.remembered() <= 4096);
}

#[test]
fn a_clock_beyond_all_tokens_gives_none() {
    let mut s = Shell::new();
    s.pass_us(MOST, 0);
    let before = s.ks.keys.clone();
    assert_eq!(s.acquire(by("a")), Err(Refusal::NoToken));
    assert_eq!(s.ks.keys, before);
}
