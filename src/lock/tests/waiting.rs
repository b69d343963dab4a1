//! The queue: who is granted, in what order, and how else a wait ends.

use super::shell::{by, key, Shell};
use crate::lock::{Due, Outcome, Refusal, Token, Verdict};

fn held(owner: &str) -> Outcome {
    Outcome::Refused(Refusal::Held {
        key: key(0, "k"),
        owner: owner.as_bytes().into(),
    })
}

/// The token of the hold under way.
fn token(s: &Shell, owner: &str) -> Token {
    s.known(&key(0, "k"), owner).unwrap().0
}

fn granted(s: &Shell, owner: &str) -> Outcome {
    Outcome::Granted(token(s, owner))
}

#[test]
fn who_nests_in_a_grant_does_so_in_the_order_of_arrival() {
    let mut s = Shell::new();
    s.get(by("a").on("k"));
    let many = s.wait(by("c").on("j k"));
    let one = s.wait(by("c").on("j"));
    let last = s.wait(by("c").on("k"));
    s.told.clear();
    s.release("a").unwrap();
    let granted: Vec<_> = s.answers().iter().map(|(id, _)| *id).collect();
    assert_eq!(granted, [many, one, last]);
}

#[test]
fn giving_back_several_keeps_what_another_request_gets_by_it() {
    let mut s = Shell::new();
    s.core.rules.detect_deadlocks = false;
    s.get(by("b").on("j"));
    s.wait(by("c").on("j"));
    s.wait(by("c").on("j k").strictly());
    // k is free, and reserved for c's pair; that is refused when c has j.
    let for_k = s.wait(by("b").on("k"));
    s.told.clear();
    assert_eq!(s.release_many("j k", "b"), Ok(1));
    assert!(s
        .answers()
        .iter()
        .any(|(id, outcome)| *id == for_k && matches!(outcome, Outcome::Granted(_))));
    assert_eq!(s.release_on(&key(0, "k"), "b", false), Ok(0));
}

#[test]
fn many_locks_that_a_script_took_get_one_token() {
    let mut s = Shell::new();
    for name in ["j", "k"] {
        s.script_takes(&key(0, name), "b", 1000);
    }
    let token = s.get(by("b").on("j k"));
    for name in ["j", "k"] {
        assert_eq!(s.get(by("b").on(name)), token);
    }
}

#[test]
fn the_lock_goes_to_who_came_first() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let c = s.wait(by("c"));
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(b, granted(&s, "b"))]);
    s.release("b").unwrap();
    assert_eq!(s.answers(), [(c, granted(&s, "c"))]);
}

#[test]
fn a_grants_lease_runs_from_the_grant() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b").lease(70));
    s.pass(500);
    s.release("a").unwrap();
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(70))));
}

#[test]
fn a_try_does_not_barge_when_the_lease_has_just_ended() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    let b = s.wait(by("b"));
    s.pass(11);
    assert_eq!(s.acquire(by("c")), Ok(Verdict::Refused));
    assert_eq!(s.answers(), [(b, granted(&s, "b"))]);
}

#[test]
fn release_of_a_nested_hold_grants_nobody() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    assert_eq!(s.answers(), []);
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(b, granted(&s, "b"))]);
}

#[test]
fn force_grants_the_next() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.get(by("a"));
    let b = s.wait(by("b"));
    assert_eq!(s.force(), Ok(true));
    assert_eq!(s.answers(), [(b, granted(&s, "b"))]);
}

#[test]
fn nesting_overtakes_those_who_wait() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b"));
    s.get(by("a"));
    assert_eq!(s.held(), Some(("a".to_owned(), 2, Some(1000))));
}

#[test]
fn once_takes_the_place_of_its_owners_request() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let other = s.wait(by("c"));
    let again = s.wait(by("b").once());
    let superseded = Outcome::Refused(Refusal::Superseded);
    assert_eq!(s.answers(), [(b, superseded)]);
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(again, granted(&s, "b"))]);
    s.release("b").unwrap();
    assert_eq!(s.answers(), [(other, granted(&s, "c"))]);
}

#[test]
fn once_takes_no_place_of_a_request_for_other_keys_or_in_another_mode() {
    let mut s = Shell::new();
    for name in ["j", "k"] {
        s.get(by("a").on(name));
    }
    s.wait(by("b").on("j k"));
    s.wait(by("b").on("k").write());
    s.wait(by("b").on("k").once());
    assert_eq!(s.answers(), []);
    s.wait(by("b").on("k j").once());
    assert_eq!(s.answers().len(), 1);
}

#[test]
fn once_that_waits_has_the_hold_that_its_owner_comes_to_have_elsewhere() {
    let mut s = Shell::new();
    s.get(by("z").on("j"));
    let again = s.wait(by("b").on("j").once().lease(3000));
    let token = s.get(by("b").on("k"));
    s.told.clear();
    s.rename(&key(0, "k"), &key(0, "j"));
    s.read_notes();
    assert_eq!(s.answers(), [(again, Outcome::Granted(token))]);
    let held = s.held_on(&key(0, "j"));
    assert_eq!(held, Some(("b".to_owned(), 1, Some(3000))));
}

#[test]
fn the_owner_of_a_connection_is_told_held_when_it_is_granted_elsewhere() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let other = s.wait(by("c"));
    let again = s.wait(by("b").strictly());
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(b, granted(&s, "b")), (again, held("b"))]);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));
    s.release("b").unwrap();
    assert_eq!(s.answers(), [(other, granted(&s, "c"))]);
}

#[test]
fn of_two_requests_of_a_connections_owner_the_first_is_granted() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b").strictly());
    let again = s.wait(by("b").strictly());
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(b, granted(&s, "b")), (again, held("b"))]);
}

#[test]
fn a_waiter_whose_owner_is_granted_nests() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b").lease(50));
    let c = s.wait(by("c"));
    let again = s.wait(by("b").lease(80));
    let more = s.wait(by("b").lease(10));
    s.release("a").unwrap();
    let nested = granted(&s, "b");
    let expected = [(b, nested.clone()), (again, nested.clone()), (more, nested)];
    assert_eq!(s.answers(), expected);
    assert_eq!(s.held(), Some(("b".to_owned(), 3, Some(80))));
    s.release_all("b").unwrap();
    assert_eq!(s.answers(), [(c, granted(&s, "c"))]);
}

#[test]
fn a_waiter_whose_owner_is_granted_another_lock_waits_on() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.get(by("a").on("j"));
    s.wait(by("b"));
    let j = s.wait(by("b").on("j"));
    s.release("a").unwrap();
    assert_eq!(s.core.waiting(), 1);
    s.told.clear();
    s.release_on(&key(0, "j"), "a", false).unwrap();
    assert_eq!(s.answers()[0].0, j);
}

#[test]
fn a_waiter_that_leaves_is_not_granted() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b").block(50));
    let c = s.wait(by("c"));
    crate::lock::leave(&mut s.core, b);
    crate::lock::leave(&mut s.core, b);
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(c, granted(&s, "c"))]);
    s.pass_and_tick(60);
    assert_eq!(s.answers(), []);
}

#[test]
fn a_waiter_whose_connection_has_closed_is_not_granted_before_it_has_left() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let c = s.wait(by("c"));
    let d = s.wait(by("d"));
    assert!(crate::lock::disconnected(&mut s.core, b));
    assert!(!crate::lock::disconnected(&mut s.core, d));
    assert!(s.core.has_due() && Due::any_now(&s.core));
    assert_eq!(s.core.waiting(), 3);
    s.release("a").unwrap();
    assert_eq!(s.answers(), [(c, granted(&s, "c"))]);
    assert_eq!(s.core.waiting(), 0);
}

#[test]
fn very_many_whose_connections_have_closed_leave_in_slices() {
    let mut s = Shell::new();
    s.get(by("a"));
    let ids: Vec<_> = (0..100).map(|_| s.wait(by("b"))).collect();
    let now = s.now;
    for id in ids {
        crate::lock::disconnected(&mut s.core, id);
    }
    assert!(crate::lock::leaving::let_leave(&mut s.core, now, 32));
    assert_eq!(s.core.waiting(), 68);
    s.tick();
    assert_eq!(s.core.waiting(), 0);
    assert!(!Due::any_now(&s.core));
}

#[test]
fn block_ends_to_the_ms_by_the_monotonic_clock() {
    let mut s = Shell::new();
    s.get(by("a").lease(5000));
    let b = s.wait(by("b").block(50));
    let due = s.now.mono.plus_us(50_000);
    assert_eq!(s.core.next_timeout(), Some(due));
    s.pass_us(1_000_000, 49_999);
    s.tick();
    assert_eq!(s.answers(), []);
    s.pass_us(0, 1);
    s.tick();
    assert_eq!(s.answers(), [(b, Outcome::TimedOut)]);
    assert_eq!(s.core.waiting(), 0);
}

#[test]
fn block_0_waits_for_ever() {
    let mut s = Shell::new();
    s.get(by("a").lease(i64::MAX));
    s.wait(by("b").block(0));
    s.pass_us(0, i64::MAX / 2);
    s.tick();
    assert_eq!(s.core.waiting(), 1);
    assert_eq!(s.core.next_timeout(), None);
}

#[test]
fn a_block_time_over_at_the_moment_of_the_release_is_timed_out() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b").block(50));
    let c = s.wait(by("c").block(51));
    s.pass(50);
    s.release("a").unwrap();
    let expected = [(b, Outcome::TimedOut), (c, granted(&s, "c"))];
    assert_eq!(s.answers(), expected);
}

#[test]
fn a_block_time_that_is_over_is_timed_out_where_it_would_nest() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let late = s.wait(by("b").block(50));
    let once = s.wait(by("b").strictly().block(50));
    s.pass(50);
    s.release("a").unwrap();
    let expected = [
        (b, granted(&s, "b")),
        (late, Outcome::TimedOut),
        (once, Outcome::TimedOut),
    ];
    assert_eq!(s.answers(), expected);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));
}

#[test]
fn a_lock_whose_waiters_are_all_too_late_is_free() {
    let mut s = Shell::new();
    s.get(by("a").lease(50));
    s.wait(by("b").block(50));
    s.wait(by("c").block(20));
    s.pass(60);
    s.get(by("d"));
    assert_eq!(s.answers().len(), 2);
    s.release("d").unwrap();
    assert!(s.core.is_idle() && s.core.queues.owner(b"a").is_none());
}

#[test]
fn waits_end_in_the_order_of_their_times() {
    let mut s = Shell::new();
    s.get(by("a").lease(5000));
    let slow = s.wait(by("b").block(50));
    let fast = s.wait(by("c").block(20));
    let same = s.wait(by("d").block(20));
    s.pass_and_tick(60);
    let ids: Vec<_> = s.answers().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [fast, same, slow]);
}

#[test]
fn a_queue_is_described() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b"));
    s.pass(30);
    s.wait(by("c"));
    s.pass(12);
    let queue = s.core.describe(s.now, &key(0, "k"));
    assert_eq!((queue.waiters, queue.oldest_wait_ms), (2, Some(42)));
    let nobody = s.core.describe(s.now, &key(0, "j"));
    assert_eq!((nobody.waiters, nobody.oldest_wait_ms), (0, None));
}
