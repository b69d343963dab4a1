//! Locks that run out between the look at them and what is written next.

use super::shell::{by, key, Shell};
use crate::lock::{Kind, Mode};

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
