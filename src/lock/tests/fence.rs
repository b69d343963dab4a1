//! RENEW … FENCE raises the counter beside a lock, and nothing is granted for a while after
//! the start.

use super::shell::{by, key, Shell};
use crate::lock::memory::{counter, Value};
use crate::lock::{Fence, Mode, Refusal, Token, WallMs};

const DAY: i64 = 24 * 3600 * 1000;

/// The counter of `k`, and when it ends.
fn counted(s: &Shell) -> Option<(Value, Option<WallMs>)> {
    s.ks.keys.get(&counter(&key(0, "k"))).cloned()
}

/// RENEW k … FENCE: what the counter is then.
fn fence(s: &mut Shell, owner: &str, mode: Mode, token: Token) -> Result<Token, Refusal> {
    let fence = Some(Fence::Raise(token));
    let fenced = s.renew_to(&key(0, "k"), owner, (mode, 1000), fence)?;
    Ok(fenced.expect("a counter"))
}

#[test]
fn it_is_the_greatest_of_counter_hold_and_token() {
    let mut s = Shell::new();
    let held = s.get(by("a"));
    assert_eq!(fence(&mut s, "a", Mode::Exclusive, Token(5)), Ok(held));
    let greater = Token(held.0 + 10);
    assert_eq!(fence(&mut s, "a", Mode::Exclusive, greater), Ok(greater));
    assert_eq!(fence(&mut s, "a", Mode::Exclusive, held), Ok(greater));
    let until = s.now.deadline(30 * DAY);
    assert_eq!(counted(&s), Some((Value::Number(greater.0), Some(until))));
    s.release("a").unwrap();
    assert!(s.get(by("b")) > greater);
}

#[test]
fn of_the_newest_of_an_owners_tokens() {
    let mut s = Shell::new();
    s.get(by("a").read());
    let written = s.get(by("a").write());
    assert_eq!(fence(&mut s, "a", Mode::Write, Token(1)), Ok(written));
    s.ks.keys.remove(&counter(&key(0, "k")));
    assert_eq!(fence(&mut s, "a", Mode::Read, Token(1)), Ok(written));
}

/// A reader's older token does not take back how far a younger one went.
#[test]
fn what_an_older_hold_raises_lowers_nothing() {
    let mut s = Shell::new();
    let ahead = Value::Number(Token::MOST.0 - 100);
    s.ks.keys.insert(counter(&key(0, "k")), (ahead, None));
    let older = s.get(by("a").read());
    let newer = s.get(by("b").read());
    s.ks.keys.remove(&counter(&key(0, "k")));
    assert_eq!(fence(&mut s, "a", Mode::Read, Token(1)), Ok(older));
    s.ks.keys.remove(&counter(&key(0, "k")));
    assert_eq!(s.get(by("c").read()), newer.next());
}

#[test]
fn a_counter_lives_on_with_each_and_one_without_a_ttl_for_ever() {
    let mut s = Shell::new();
    s.get(by("a"));
    fence(&mut s, "a", Mode::Exclusive, Token(1)).unwrap();
    s.pass(DAY);
    let held = s.get(by("a"));
    fence(&mut s, "a", Mode::Exclusive, Token(1)).unwrap();
    let until = s.now.deadline(30 * DAY);
    assert_eq!(counted(&s), Some((Value::Number(held.0), Some(until))));
    let kept = (Value::Number(held.0), None);
    s.ks.keys.insert(counter(&key(0, "k")), kept.clone());
    fence(&mut s, "a", Mode::Exclusive, Token(1)).unwrap();
    assert_eq!(counted(&s), Some(kept));
}

#[test]
fn who_does_not_hold_it_raises_nothing() {
    let mut s = Shell::new();
    s.get(by("a"));
    let refused = fence(&mut s, "b", Mode::Exclusive, Token(1));
    assert!(
        matches!(refused, Err(Refusal::NotHeld { .. })),
        "{refused:?}"
    );
    let refused = fence(&mut s, "a", Mode::Read, Token(1));
    assert!(
        matches!(refused, Err(Refusal::NotHeld { .. })),
        "{refused:?}"
    );
    assert_eq!(counted(&s), None);
}

#[test]
fn what_is_no_counter_is_left_alone_and_so_is_the_lease() {
    let mut s = Shell::new();
    s.get(by("a").lease(70));
    let other = (Value::Text, None);
    s.ks.keys.insert(counter(&key(0, "k")), other.clone());
    let before = s.ks.keys.clone();
    let refused = fence(&mut s, "a", Mode::Exclusive, Token(1));
    assert!(
        matches!(refused, Err(Refusal::CounterUnusable { .. })),
        "{refused:?}"
    );
    assert_eq!(s.ks.keys, before);
}

#[test]
fn after_the_start_only_who_holds_it_is_granted() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.core.rules.grants_in = Some(5);
    let not_yet = Err(Refusal::NotYet { ms: 5 });
    let before = s.ks.keys.clone();
    for request in [by("b"), by("b").block(100), by("b").read(), by("a").read()] {
        let refused = s.acquire(request);
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(s.acquire(by("b").on("free")), not_yet);
    assert_eq!(s.ks.keys, before);
    s.get(by("a"));
    s.release("a").unwrap();
    s.release("a").unwrap();
    assert_eq!(s.acquire(by("a")), not_yet);
    s.core.rules.grants_in = None;
    s.get(by("b"));
}
