//! Rights that are taken away from who waits, and from who watches a lock.

use super::shell::{by, key, Request, Shell};
use crate::lock::{ClientId, Notice, Outcome, Reason, Refusal};

/// Rights that were taken away are looked at when it is its turn, and not before.
#[test]
fn one_without_rights_leaves_at_its_turn_and_the_next_has_the_lock() {
    let mut s = Shell::new();
    s.get(by("a"));
    let bob = ClientId::new(77).unwrap();
    let first = s.wait(Request {
        client: Some(77),
        ..by("b")
    });
    let next = s.wait(by("c"));
    s.ks.without_rights.insert(bob);
    s.pass_and_tick(10);
    s.told.clear();
    s.release("a").unwrap();
    let key = key(0, "k");
    let refused = Outcome::Refused(Refusal::NoPermission { key });
    let answers = s.answers();
    assert_eq!(answers.first(), Some(&(first, refused)));
    assert!(matches!(answers[1..], [(id, Outcome::Granted(_))] if id == next));
    assert_eq!(s.held(), Some(("c".to_owned(), 1, Some(1000))));
}

#[test]
fn a_watch_without_rights_is_renewed_no_more_and_its_lease_ends() {
    let mut s = Shell::new();
    s.get(Request {
        client: Some(77),
        ..by("a").watched().lease(900)
    });
    s.ks.without_rights.insert(ClientId::new(77).unwrap());
    s.told.clear();
    for _ in 0..4 {
        s.pass_and_tick(301);
    }
    assert_eq!(s.held(), None);
    let lost =
        |notice: &&Notice| matches!(notice, Notice::Lost(loss) if loss.reason == Reason::Expired);
    assert_eq!(s.told.iter().filter(lost).count(), 1);
}
