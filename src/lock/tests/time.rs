//! Clocks: leases that end, and tokens that rise.

use super::shell::{by, key, Shell};
use crate::lock::{Event, Notice, Token};

#[test]
fn a_lock_lives_through_the_last_ms_of_its_lease() {
    let mut s = Shell::new();
    let at = s.now.wall_ms().plus_ms(100);
    s.get(by("a").lease(100));
    s.told.clear();
    assert_eq!(s.core.next_expiry(), Some(at.plus_ms(1)));
    s.pass_and_tick(100);
    assert_eq!(s.events(), []);
    s.pass_and_tick(1);
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
    assert!(s.core.is_idle());
}

#[test]
fn a_lease_that_ends_grants_the_next_and_is_told_once() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.get(by("a").lease(10));
    s.wait(by("b"));
    s.told.clear();
    s.pass_and_tick(11);
    s.tick();
    let key = key(0, "k");
    let expected = [(key.clone(), Event::Expired), (key, Event::Acquired)];
    assert_eq!(s.events(), expected);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));
}

#[test]
fn the_servers_own_expiry_is_told_once() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.told.clear();
    s.pass(11);
    s.expire_cycle();
    s.tick();
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
}

#[test]
fn a_command_finds_the_lease_ended_before_the_timer_does() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.told.clear();
    s.pass(11);
    s.renew("a", 10).unwrap_err();
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
    s.tick();
    assert_eq!(s.events(), []);
}

#[test]
fn a_freed_lock_wakes_those_who_listen_and_a_granted_one_does_not() {
    let wakes = |s: &mut Shell| {
        let told = std::mem::take(&mut s.told);
        let is_wake = |notice: &&Notice| matches!(notice, Notice::Wake { .. });
        told.iter().filter(is_wake).count()
    };
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b"));
    s.release("a").unwrap();
    assert_eq!(wakes(&mut s), 0);
    s.release("b").unwrap();
    assert_eq!(wakes(&mut s), 1);
    s.get(by("a").lease(10));
    s.pass_and_tick(11);
    assert_eq!(wakes(&mut s), 1);
}

#[test]
fn leases_end_by_the_wall_clock() {
    let mut s = Shell::new();
    s.get(by("a").lease(1000));
    s.told.clear();
    s.pass_us(1_001_000, 0);
    s.tick();
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
}

#[test]
fn locks_that_are_due_end_earliest_first_and_a_batch_at_a_time() {
    let mut s = Shell::new();
    s.get(by("a").on("x").lease(30));
    s.get(by("a").on("y").lease(10));
    s.get(by("a").on("z").lease(20));
    s.pass(31);
    assert_eq!(s.core.locks.due(s.now, 2), [key(0, "y"), key(0, "z")]);
}

#[test]
fn a_lock_found_in_the_keyspace_is_watched_once_touched() {
    let mut s = Shell::new();
    s.script_takes(&key(0, "k"), "r", 50);
    assert!(s.core.is_idle());
    s.acquire(by("a")).unwrap();
    s.pass_and_tick(51);
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
    assert!(s.core.is_idle());
}

#[test]
fn tokens_are_microseconds_and_rise() {
    let mut s = Shell::new();
    assert_eq!(s.get(by("a")), Token(s.now.wall.0));
    assert_eq!(s.get(by("a").on("j")), Token(s.now.wall.0 + 1));
    s.pass_us(50, 50);
    assert_eq!(s.get(by("a").on("i")), Token(s.now.wall.0));
}

#[test]
fn tokens_rise_when_the_clock_is_set_back() {
    let mut s = Shell::new();
    let first = s.get(by("a"));
    s.wait(by("b"));
    s.pass_us(-5_000_000, 0);
    s.release("a").unwrap();
    assert_eq!(s.get(by("b")), first.next());
    assert_eq!(s.get(by("c").on("j")), first.next().next());
}

#[test]
fn a_lock_whose_token_is_not_known_gets_one_and_keeps_it() {
    let mut s = Shell::new();
    s.script_takes(&key(0, "k"), "r", 50);
    let before = s.get(by("a").on("j"));
    let token = s.get(by("r"));
    assert!(token > before);
    s.pass(5);
    assert_eq!(s.get(by("r")), token);
    assert_eq!(s.held(), Some(("r".to_owned(), 3, Some(1000))));
}

#[test]
fn a_hold_knows_since_when_it_is() {
    let mut s = Shell::new();
    let token = s.get(by("a"));
    s.pass(25);
    s.get(by("a"));
    assert_eq!(s.known(&key(0, "k"), "a"), Some((token, 25)));
    assert_eq!(s.known(&key(0, "k"), "b"), None);
}
