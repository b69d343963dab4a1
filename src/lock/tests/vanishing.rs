//! Locks that run out between the look at them and what is written next.

use super::shell::{by, events, key, Request, Shell};
use crate::lock::{Event, Kind, Mode, Notice};

fn holds(s: &mut Shell, owner: &str) -> i64 {
    use crate::lock::Keyspace;
    let look = s.ks.look(&key(0, "k"), owner.as_bytes());
    assert_ne!(look.kind, Kind::Free, "{owner} has what is not there");
    look.holds
}

#[test]
fn who_joins_a_reader_at_its_very_end_has_a_lock_of_its_own() {
    let mut s = Shell::new();
    s.get(by("a").read().lease(10));
    s.ks.vanishing = Some(key(0, "k"));
    s.get(by("b").read());
    assert_eq!((holds(&mut s, "b"), holds(&mut s, "a")), (1, 0));
    assert_eq!(s.release_as(&key(0, "k"), "b", Mode::Read, false), Ok(0));
}

#[test]
fn who_waits_for_a_lock_that_ends_as_it_nests_has_it_anew() {
    let mut s = Shell::new();
    s.get(by("a").on("j"));
    s.get(by("b").on("k").lease(10));
    let id = s.wait(by("b").on("j k"));
    s.told.clear();
    s.ks.vanishing = Some(key(0, "k"));
    s.release_on(&key(0, "j"), "a", false).unwrap();
    s.read_notes();
    let granted: Vec<_> = s.answers().iter().map(|(id, _)| *id).collect();
    assert_eq!(granted, [id]);
    assert_eq!(holds(&mut s, "b"), 1);
}

/// The server reads its clock when it looks at a key, and that is later than the core did.
fn tick_behind_the_server(s: &mut Shell) {
    s.ks.now_ms = s.now.wall_ms().plus_ms(1);
    s.tick();
}

#[test]
fn a_stall_that_ends_with_the_lease_is_survived() {
    for of in [
        |request: Request<'static>| request,
        Request::read,
        Request::write,
        |request: Request<'static>| request.permits(1, 2),
    ] {
        let mut s = Shell::new();
        s.get(of(by("a")).watched());
        s.told.clear();
        s.pass(1000);
        tick_behind_the_server(&mut s);
        let told: Vec<_> = s.told.iter().collect();
        let silent = told.iter().all(|notice| !matches!(notice, Notice::Lost(_)));
        assert!(silent && events(&s.told).is_empty(), "{told:?}");
        assert_eq!(s.held(), Some(("a".to_owned(), 1, Some(1000))));
    }
}

#[test]
fn a_reader_whose_lease_ends_as_it_is_looked_at_has_run_out() {
    let mut s = Shell::new();
    s.get(by("b").read().lease(5000));
    s.get(by("a").read());
    s.told.clear();
    s.pass(1000);
    s.ks.now_ms = s.now.wall_ms().plus_ms(1);
    let again = s.release_as(&key(0, "k"), "a", Mode::Read, false);
    assert!(again.is_err(), "{again:?}");
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
}
