//! Grants whose client is found gone before its reply went out.

use super::shell::{by, key, Shell};
use crate::lock::{Event, Outcome};

#[test]
fn a_lost_grant_goes_to_the_next() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let c = s.wait(by("c"));
    s.release("a").unwrap();
    s.told.clear();
    s.lose(b);
    let events = super::shell::events(&s.told);
    let key = key(0, "k");
    let expected = [(key.clone(), Event::Released), (key, Event::Acquired)];
    assert_eq!(events, expected);
    assert_eq!(s.answers()[0].0, c);
    assert_eq!(s.held(), Some(("c".to_owned(), 1, Some(1000))));
}

#[test]
fn a_lost_grant_with_nobody_next_frees_the_lock() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    s.lose(b);
    assert_eq!(s.held(), None);
    assert!(s.core.is_idle() && s.core.in_flight.grants.is_empty());
}

#[test]
fn a_confirmed_grant_is_not_taken_back() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    s.core.confirm(b);
    s.lose(b);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));
}

#[test]
fn a_grant_is_taken_back_once() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.wait(by("b"));
    s.release("a").unwrap();
    s.lose(b);
    s.lose(b);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));
}

#[test]
fn a_lost_nested_grant_leaves_the_outer_hold() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b").lease(50));
    let nested = s.wait(by("b").lease(80));
    let c = s.wait(by("c"));
    s.release("a").unwrap();
    s.told.clear();
    s.lose(nested);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(80))));
    assert_eq!(s.answers(), []);
    s.release("b").unwrap();
    assert_eq!(s.answers()[0].0, c);
}

#[test]
fn a_lost_grant_that_was_released_meanwhile_ends_nothing_else() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    // On another connection of the owner.
    s.release("b").unwrap();
    s.get(by("b"));
    s.lose(b);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));
}

#[test]
fn a_lost_grant_that_was_forced_meanwhile_ends_nothing_else() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    s.force().unwrap();
    s.get(by("c"));
    s.lose(b);
    assert_eq!(s.held(), Some(("c".to_owned(), 1, Some(1000))));
}

#[test]
fn a_lost_grant_whose_lease_is_over_has_expired() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b").lease(10));
    let c = s.wait(by("c"));
    s.release("a").unwrap();
    s.told.clear();
    s.pass(11);
    s.lose(b);
    let key = key(0, "k");
    let expected = [(key.clone(), Event::Expired), (key, Event::Acquired)];
    assert_eq!(super::shell::events(&s.told), expected);
    assert!(matches!(s.answers()[..], [(id, Outcome::Granted(_))] if id == c));
}

#[test]
fn a_lost_grant_is_taken_back_where_the_lock_was_renamed_to() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    s.rename(&key(0, "k"), &key(0, "j"));
    s.lose(b);
    assert_eq!(s.held_on(&key(0, "j")), None);
}

#[test]
fn a_lost_grant_is_taken_back_where_its_database_was_swapped_to() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    s.swap(0, 1);
    s.lose(b);
    assert_eq!(s.held_on(&key(1, "k")), None);
}
