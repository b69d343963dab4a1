//! Requests that are said again, with ONCE.

use super::*;

#[test]
fn the_same_request_said_again_keeps_its_place_and_nobody_is_told() {
    let mut s = held();
    let ask = queued("b").tag("t").once();
    let old = s.wait(ask);
    s.wait(by("c").queue(0).from(OTHER).tag("t"));
    let new = s.wait(ask);
    assert_ne!(old, new);
    assert_eq!(said(&mut s), Vec::<String>::new());
    s.release("a").unwrap();
    assert_eq!(said(&mut s), ["1: granted t"]);
    // And after the grant, whose message is perhaps on its way yet.
    let token = s.get(ask);
    assert_eq!(s.known(&key(0, "k"), "b").map(|known| known.0), Some(token));
    assert_eq!(s.held().map(|held| held.1), Some(1));
    assert_eq!(said(&mut s), Vec::<String>::new());
}

#[test]
fn a_request_from_a_new_connection_is_the_same_if_it_reads_the_same() {
    let mut s = held();
    s.wait(queued("b").tag("t").once());
    s.wait(by("b").queue(0).from(OTHER).tag("t").once());
    assert_eq!(said(&mut s), Vec::<String>::new());
    close(&mut s, ONE);
    s.release("a").unwrap();
    assert_eq!(said(&mut s), ["2: granted t"]);
}

#[test]
fn a_newer_request_of_the_same_owner_takes_the_place_of_the_older_one() {
    for (old, new) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut s = held();
        let waits = |queues: bool, from, tag| {
            let ask = by("b").once().from(from).tag(tag);
            if queues {
                ask.queue(0)
            } else {
                ask.block(0)
            }
        };
        let first = s.wait(waits(old, ONE, "old"));
        s.wait(by("c"));
        let second = s.wait(waits(new, OTHER, "new"));
        let told = std::mem::take(&mut s.told);
        let superseded = Outcome::Refused(Refusal::Superseded);
        assert_eq!(answers(&told), [(first, superseded)]);
        s.told = told;
        let to_old = ["1: error old Superseded"];
        assert_eq!(said(&mut s), to_old[..usize::from(old)]);
        s.release("a").unwrap();
        let granted = answers(&s.told);
        assert!(matches!(granted[..], [(id, Outcome::Granted(_))] if id == second));
        assert_eq!(said(&mut s), ["2: granted new"][..usize::from(new)]);
    }
}

#[test]
fn a_request_for_many_keys_is_taken_over_by_one_for_the_same_set_alone() {
    let mut s = held();
    s.wait(queued("b").on("j k").tag("old").once());
    s.wait(by("c").on("j"));
    let other = s.wait(queued("b").on("j").tag("tail").once());
    assert_eq!(said(&mut s), Vec::<String>::new());
    let line = s.core.queues.line(&key(0, "j"));
    assert_eq!(line.queue.ids().last(), Some(other));
    s.wait(queued("b").on("k j").tag("new").once());
    assert_eq!(said(&mut s), ["1: error old Superseded"]);
    s.release("a").unwrap();
    // It stood first, and its owner's other one nests in it.
    assert_eq!(said(&mut s)[0], "1: granted new");
}

#[test]
fn a_tag_stands_for_one_wait_or_hold_of_its_connection() {
    let mut s = held();
    let in_use = |got: Result<Verdict, Refusal>| matches!(got, Err(Refusal::TagInUse { .. }));
    s.wait(queued("b").tag("t"));
    assert!(in_use(s.acquire(queued("c").tag("t"))));
    // Without ONCE it is another request, which would wait behind the first.
    assert!(in_use(s.acquire(queued("b").tag("t"))));
    assert!(in_use(s.acquire(by("b").on("j").from(ONE).tag("t").once())));
    s.get(by("b").on("j").from(OTHER).tag("t"));
    s.release("a").unwrap();
    assert!(in_use(s.acquire(by("d").on("i").from(ONE).tag("t"))));
    s.release("b").unwrap();
    s.get(by("d").on("i").from(ONE).tag("t"));
}

#[test]
fn once_binds_the_hold_under_way_to_the_connection_it_names() {
    let mut s = Shell::new();
    s.get(by("b").from(ONE).tag("t").watched());
    s.get(by("b").from(OTHER).tag("u").watched().once());
    let told = s.told.clone();
    assert_eq!(watchers(&told), [client(ONE)]);
    assert_eq!(said(&mut s), ["1: lost t Rebound"]);
    // The close of the old connection does nothing to it, that of the new one ends it.
    close(&mut s, ONE);
    assert!(s.held().is_some());
    close(&mut s, OTHER);
    assert_eq!(s.held(), None);
    assert!(s.core.sessions.is_empty() && s.core.watchdogs.is_empty());
}

#[test]
fn what_once_does_not_name_stays_as_it_was() {
    let mut s = Shell::new();
    s.get(by("b").from(ONE).tag("t").watched());
    s.get(by("b").from(OTHER).once());
    assert_eq!(said(&mut s), Vec::<String>::new());
    s.get(by("b").from(OTHER).watched().once());
    assert_eq!(said(&mut s), Vec::<String>::new());
    s.force().unwrap();
    assert_eq!(watchers(&s.told), [client(OTHER)]);
    assert_eq!(said(&mut s), ["1: lost t Forced"]);
}

/// The server was promoted meanwhile, say.
#[test]
fn once_finds_out_when_a_hold_ends_that_was_not_known() {
    for watched in [false, true] {
        let mut s = Shell::new();
        s.get(by("b").lease(60));
        s.demoted();
        let again = by("b").lease(50).from(ONE).tag("t").once();
        s.get(if watched { again.watched() } else { again });
        s.told.clear();
        for _ in 0..61 {
            s.pass_and_tick(1);
        }
        let lost = ["1: lost t Expired"];
        assert_eq!(said(&mut s), lost[..usize::from(!watched)]);
    }
}
