//! ACQUIRE, RELEASE, RENEW and FORCE of a lock for which nobody waits.

use super::shell::{by, key, Shell};
use crate::lock::memory::Value;
use crate::lock::{Event, Foreign, Mode, Refusal, Verdict, WallMs};

fn not_held(owner: &str) -> Refusal {
    Refusal::NotHeld {
        key: key(0, "k"),
        owner: owner.as_bytes().into(),
        asked: Mode::Exclusive,
        held_for: None,
    }
}

fn held(owner: &str) -> Refusal {
    Refusal::Held {
        key: key(0, "k"),
        owner: owner.as_bytes().into(),
    }
}

fn holder(owner: &str, holds: i64, left: i64) -> Option<(String, i64, Option<i64>)> {
    Some((owner.to_owned(), holds, Some(left)))
}

#[test]
fn a_free_lock_is_taken_for_its_lease() {
    let mut s = Shell::new();
    s.get(by("a").lease(70));
    assert_eq!(s.held(), holder("a", 1, 70));
    assert_eq!(s.events(), [(key(0, "k"), Event::Acquired)]);
}

#[test]
fn a_try_on_a_held_lock_is_refused_and_changes_nothing() {
    let mut s = Shell::new();
    s.get(by("a"));
    let before = s.ks.keys.clone();
    s.told.clear();
    assert_eq!(s.acquire(by("b")), Ok(Verdict::Refused));
    assert_eq!(s.acquire(by("b").once()), Ok(Verdict::Refused));
    assert_eq!(s.ks.keys, before);
    assert!(s.told.is_empty());
}

#[test]
fn nesting_counts_up_and_keeps_the_token() {
    let mut s = Shell::new();
    let token = s.get(by("a"));
    s.pass(5);
    assert_eq!(s.get(by("a")), token);
    assert_eq!(s.held(), holder("a", 2, 1000));
}

#[test]
fn nesting_lengthens_the_lease_and_never_shortens_it() {
    let mut s = Shell::new();
    s.get(by("a").lease(100));
    s.get(by("a").lease(300));
    assert_eq!(s.held(), holder("a", 2, 300));
    s.get(by("a").lease(1));
    assert_eq!(s.held(), holder("a", 3, 300));
}

#[test]
fn the_owner_of_a_connection_does_not_nest() {
    let mut s = Shell::new();
    s.get(by("a").strictly().lease(70));
    assert_eq!(s.acquire(by("a").strictly()), Err(held("a")));
    assert_eq!(s.acquire(by("a").strictly().block(0)), Err(held("a")));
    assert_eq!(s.held(), holder("a", 1, 70));
    s.get(by("a"));
}

#[test]
fn with_once_the_hold_under_way_is_had_again_for_at_least_the_lease() {
    let mut s = Shell::new();
    let token = s.get(by("a").once().lease(70));
    s.told.clear();
    assert_eq!(s.get(by("a").once().lease(50)), token);
    assert_eq!(s.held(), holder("a", 1, 70));
    s.told.clear();
    assert_eq!(s.get(by("a").once().lease(90)), token);
    assert_eq!(s.events(), [(key(0, "k"), Event::Renewed)]);
    assert_eq!(s.held(), holder("a", 1, 90));
    assert_eq!(s.release("a"), Ok(0));
}

#[test]
fn release_ends_one_hold_and_leaves_the_lease_alone() {
    let mut s = Shell::new();
    s.get(by("a").lease(100));
    s.get(by("a").lease(300));
    s.pass(10);
    assert_eq!(s.release("a"), Ok(1));
    assert_eq!(s.held(), holder("a", 1, 290));
    assert_eq!(s.release("a"), Ok(0));
    assert_eq!(s.held(), None);
    assert_eq!(s.release("a"), Err(not_held("a")));
}

#[test]
fn release_all_ends_every_hold_with_one_event() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.get(by("a"));
    s.told.clear();
    assert_eq!(s.release_all("a"), Ok(0));
    assert_eq!(s.held(), None);
    assert_eq!(s.events(), [(key(0, "k"), Event::Released)]);
}

#[test]
fn who_does_not_hold_it_can_neither_release_nor_renew() {
    let mut s = Shell::new();
    assert_eq!(s.release("a"), Err(not_held("a")));
    assert_eq!(s.renew("a", 10), Err(not_held("a")));
    s.get(by("a").lease(70));
    s.told.clear();
    assert_eq!(s.release_all("b"), Err(not_held("b")));
    assert_eq!(s.renew("b", 10), Err(not_held("b")));
    assert_eq!(s.held(), holder("a", 1, 70));
    assert!(s.told.is_empty());
}

#[test]
fn renew_sets_the_lease_exactly_shorter_too() {
    let mut s = Shell::new();
    s.get(by("a").lease(100));
    assert_eq!(s.renew("a", 300), Ok(()));
    assert_eq!(s.held(), holder("a", 1, 300));
    assert_eq!(s.renew("a", 20), Ok(()));
    assert_eq!(s.held(), holder("a", 1, 20));
    s.told.clear();
    s.pass_and_tick(21);
    assert_eq!(s.held(), None);
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
}

#[test]
fn force_frees_all_holds_and_says_whether_there_were_any() {
    let mut s = Shell::new();
    assert_eq!(s.force(), Ok(false));
    s.get(by("a"));
    s.get(by("a"));
    s.told.clear();
    assert_eq!(s.force(), Ok(true));
    assert_eq!(s.held(), None);
    assert_eq!(s.events(), [(key(0, "k"), Event::Forced)]);
    assert!(s.core.is_idle());
}

#[test]
fn a_persisted_lock_has_no_lease_until_renew_gives_it_one() {
    let mut s = Shell::new();
    s.get(by("a").lease(100));
    s.pexpire(&key(0, "k"), None);
    s.pass_and_tick(200);
    s.get(by("a").lease(100));
    assert_eq!(s.held(), Some(("a".to_owned(), 2, None)));
    assert_eq!(s.core.next_expiry(), None);
    assert_eq!(s.renew("a", 50), Ok(()));
    assert_eq!(s.held(), holder("a", 2, 50));
}

#[test]
fn a_key_that_is_no_lock_is_refused_untouched() {
    let hash = |fields: &[(&str, &str)]| {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Value::Hash(fields.iter().map(|(f, v)| (bytes(f), bytes(v))).collect())
    };
    let cases = [
        (Value::Text, Foreign::OtherType),
        (hash(&[("a", "1"), ("b", "1")]), Foreign::OtherHash),
        (hash(&[("a", "0")]), Foreign::OtherHash),
        (hash(&[("a", "-1")]), Foreign::OtherHash),
        (hash(&[("a", "x")]), Foreign::OtherHash),
    ];
    for (value, why) in cases {
        let mut s = Shell::new();
        s.ks.keys
            .insert(key(0, "k"), (value.clone(), Some(WallMs(i64::MAX))));
        let no_lock = Refusal::NotALock {
            key: key(0, "k"),
            why,
        };
        assert_eq!(s.acquire(by("a").block(0)), Err(no_lock.clone()));
        assert_eq!(s.release("a"), Err(no_lock.clone()));
        assert_eq!(s.renew("a", 10), Err(no_lock.clone()));
        assert_eq!(s.force(), Err(no_lock));
        assert_eq!(s.ks.keys[&key(0, "k")], (value, Some(WallMs(i64::MAX))));
        assert!(s.told.is_empty() && s.core.is_idle());
    }
}

#[test]
fn one_name_in_two_databases_is_two_locks() {
    let mut s = Shell::new();
    s.get(by("a"));
    let mut elsewhere = by("b");
    elsewhere.db = 1;
    s.get(elsewhere);
    assert_eq!(s.release_on(&key(1, "k"), "b", false), Ok(0));
    assert_eq!(s.held(), holder("a", 1, 1000));
}

#[test]
fn an_owner_may_be_any_bytes() {
    let mut s = Shell::new();
    s.get(by("\0\r\n\u{1F512}"));
    assert_eq!(s.release("\0"), Err(not_held("\0")));
    assert_eq!(s.release("\0\r\n\u{1F512}"), Ok(0));
}

#[test]
fn a_hold_count_at_its_end_does_not_wrap() {
    let mut s = Shell::new();
    let most = i64::MAX.to_string().into_bytes();
    let hash = Value::Hash([(b"a".to_vec(), most)].into());
    s.ks.keys
        .insert(key(0, "k"), (hash, Some(WallMs(i64::MAX))));
    let refused = Refusal::TooManyHolds {
        key: key(0, "k"),
        owner: b"a"[..].into(),
    };
    assert_eq!(s.acquire(by("a")), Err(refused));
    assert_eq!(s.release("a"), Ok(i64::MAX - 1));
}

#[test]
fn a_released_lock_leaves_nothing_behind() {
    let mut s = Shell::new();
    for name in ["j", "k", "l"] {
        s.get(by("a").on(name));
        s.get(by("a").on(name));
        assert_eq!(s.release_on(&key(0, name), "a", true), Ok(0));
    }
    assert!(s.core.is_idle());
    assert_eq!((s.core.locks.deadlines(), s.core.next_expiry()), (0, None));
}
