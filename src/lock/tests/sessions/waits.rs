//! How waits by QUEUE end.

use super::*;

#[test]
fn one_connection_waits_for_many_and_is_told_of_each_by_its_tag() {
    let mut s = held();
    s.get(by("a").on("j"));
    let first = s.wait(queued("b").tag("first"));
    s.wait(queued("c").tag("second").queue(500));
    s.wait(queued("b").on("j").tag("third"));
    s.pass_and_tick(500);
    assert_eq!(said(&mut s), ["1: timeout second"]);
    s.release("a").unwrap();
    s.release_on(&key(0, "j"), "a", false).unwrap();
    assert_eq!(said(&mut s), ["1: granted first", "1: granted third"]);
    // A message is on its way as a reply is.
    assert!(s.core.in_flight.grants.contains_key(&first));
    s.lose(first);
    assert_eq!(s.held(), None);
}

#[test]
fn a_connection_that_hears_nothing_is_granted_nothing() {
    let mut s = held();
    s.wait(queued("b").tag("t"));
    let next = s.wait(by("c"));
    s.ks.deaf.insert(client(ONE));
    s.release("a").unwrap();
    let told = std::mem::take(&mut s.told);
    assert!(matches!(answers(&told)[..], [(id, Outcome::Granted(_))] if id == next));
    // One of `a`'s release, one of the grant: no token was made for `b`.
    assert_eq!(events(&told).len(), 2);
    assert!(s.core.sessions.is_empty() && s.core.queues.is_empty());
}

/// The connection released what it was granted, and has taken the same again meanwhile.
#[test]
fn a_lost_grant_takes_back_its_own_hold_and_no_other() {
    let mut s = held();
    s.wait(by("b").queue(0).from(OTHER).tag("other"));
    let lost = s.wait(queued("b").tag("t"));
    s.release("a").unwrap();
    release_by(&mut s, "b", ONE);
    s.get(by("b").from(ONE));
    s.lose(lost);
    assert_eq!(s.held().map(|held| held.1), Some(2));
}

/// Its client was unblocked, and has another hold there by another request.
#[test]
fn a_lost_grant_takes_its_watchdog_and_leaves_the_address_of_another() {
    let mut s = held();
    let lost = s.wait(by("b").from(ONE).watched());
    s.wait(queued("b").tag("t"));
    s.release("a").unwrap();
    s.lose(lost);
    assert_eq!(s.held().map(|held| held.1), Some(1));
    assert_eq!(
        s.core
            .stats(s.now)
            .iter()
            .find(|(name, _)| *name == c"watchdog_holds")
            .unwrap()
            .1,
        0
    );
    s.told.clear();
    s.force().unwrap();
    assert_eq!(said(&mut s), ["1: lost t Forced"]);
}

#[test]
fn whoever_is_blocked_is_granted_also_where_its_loss_cannot_be_told() {
    let mut s = held();
    s.ks.deaf.insert(client(ONE));
    let b = s.wait(by("b").from(ONE).tag("t"));
    s.release("a").unwrap();
    assert!(matches!(s.answers()[..], [(id, Outcome::Granted(_))] if id == b));
}

#[test]
fn entries_of_a_closed_connection_are_skipped_before_they_are_removed() {
    let mut s = held();
    for number in 0..100 {
        s.wait(queued("b").tag(&number.to_string()));
    }
    let next = s.wait(by("c"));
    s.notes.push(Note::Closed(client(ONE)));
    s.release("a").unwrap();
    let told = std::mem::take(&mut s.told);
    assert!(matches!(answers(&told)[..], [(id, Outcome::Granted(_))] if id == next));
    s.read_notes();
    assert!(s.core.sessions.is_empty() && s.core.heard.closed.is_empty());
}

#[test]
fn a_session_of_many_waits_closes_in_slices_and_keeps_nobody_out_for_long() {
    let mut s = held();
    s.get(by("a").on("j"));
    for number in 0..10_000 {
        let tag = number.to_string();
        s.wait(queued("b").on(["j", "k"][number % 2]).tag(&tag));
    }
    s.notes.push(Note::Closed(client(ONE)));
    s.piece_us = 100;
    s.release("a").unwrap();
    s.release_on(&key(0, "j"), "a", false).unwrap();
    let mut slices = 0;
    while !matches!(s.acquire(by("c")), Ok(Verdict::Granted(_))) {
        slices += 1;
        let before = s.core.queues.len();
        s.tick();
        // Of 15 pieces, each with as many as are looked at in one go.
        assert!(before - s.core.queues.len() <= 16 * 160, "{before}");
    }
    assert!((1..=40).contains(&slices), "{slices}");
    while s.core.has_due() {
        s.tick();
    }
    assert!(s.core.queues.is_empty() && s.core.sessions.is_empty());
    assert_eq!(said(&mut s), Vec::<String>::new());
}

#[test]
fn cancel_ends_the_waits_of_an_owner_for_a_key_and_no_others() {
    let mut s = Shell::new();
    s.get(by("a").write());
    s.wait(queued("b").read().tag("read"));
    s.wait(queued("b").write().tag("write"));
    let blocked = s.wait(by("b").write());
    s.wait(queued("c").read().tag("other"));
    s.wait(queued("b").on("k j").tag("many"));
    s.told.clear();
    assert_eq!(cancel(&mut s, "b", Some(Mode::Read)), 1);
    assert_eq!(said(&mut s), ["1: timeout read"]);
    assert_eq!(cancel(&mut s, "b", None), 3);
    assert!(answers(&s.told).contains(&(blocked, Outcome::TimedOut)));
    assert_eq!(said(&mut s), ["1: timeout write", "1: timeout many"]);
    assert_eq!(cancel(&mut s, "b", None), 0);
    assert_eq!(s.core.counters.cancelled, 4);
}

#[test]
fn a_demotion_sends_all_away_in_slices_each_once() {
    let mut s = held();
    for number in 0..1000 {
        s.wait(queued("b").tag(&number.to_string()));
    }
    s.told.clear();
    lock::demoted(&mut s.core);
    lock::demoted(&mut s.core);
    s.piece_us = 200;
    s.lapse();
    let first = said(&mut s).len();
    assert!((100..1000).contains(&first), "{first}");
    while lets_go(&s) {
        s.lapse();
    }
    assert_eq!(first + said(&mut s).len(), 1000);
    assert!(s.core.queues.is_empty() && s.core.sessions.is_empty());
}

/// How many of 400 requests are over after one piece of the work that ends them.
fn over_in_one_piece(keys: usize, end: fn(&mut Shell, &str)) -> usize {
    let names: Vec<_> = (0..keys).map(|number| number.to_string()).collect();
    let names = names.join(" ");
    let mut s = Shell::new();
    s.get(by("a").on(&names));
    let ids: Vec<_> = (0..400)
        .map(|number| {
            let owner = number.to_string();
            s.wait(by(&owner).on(&names).queue(500).from(ONE).tag(&owner))
        })
        .collect();
    s.piece_us = 3000;
    end(&mut s, &names);
    let waits = |id: &&lock::WaiterId| s.core.queues.get(**id).is_some();
    ids.len() - ids.iter().filter(waits).count()
}

#[test]
fn what_is_done_in_one_piece_is_measured_in_keys() {
    let ways: [fn(&mut Shell, &str); 5] = [
        |s, _| s.pass_and_tick(501),
        |s, _| s.demoted(),
        |s, _| {
            s.notes.push(Note::Closed(client(ONE)));
            s.run(lock::Occasion::Command);
        },
        |s, names| {
            s.ks.deaf.insert(client(ONE));
            s.release_many(names, "a").unwrap();
        },
        |s, _| {
            let ids: Vec<_> = s.core.waits_of(client(ONE)).collect();
            for id in ids {
                lock::disconnected(&mut s.core, id);
            }
            s.tick();
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let [one, eight] = [1, 8].map(|keys| over_in_one_piece(keys, way));
        assert!(
            (8..400).contains(&one) && (1..=one / 8).contains(&eight),
            "way {number}: {one} with one key, {eight} with eight"
        );
    }
}

/// Each of its keys is found to be on another node, and it is looked at again and again.
#[test]
fn a_request_for_two_keys_whose_slot_has_moved_is_sent_away_once() {
    let mut s = held();
    s.get(by("a").on("j"));
    s.wait(queued("b").on("j k").tag("t"));
    s.told.clear();
    s.ks.slot = Slot::Others;
    for name in ["j", "k"] {
        s.changed(&key(0, name), Cause::Removed);
    }
    s.read_notes();
    for _ in 0..3 {
        s.tick();
    }
    let answered = answers(&s.told).len();
    assert_eq!((said(&mut s).len(), answered), (1, 1));
}

#[test]
fn nothing_is_left_of_a_session_when_all_of_it_is_over() {
    let mut s = held();
    s.get(by("b").on("j").from(ONE).tag("hold").watched());
    s.get(by("b").on("i").from(ONE).tag("lease"));
    s.wait(queued("b").tag("wait"));
    let blocked = s.wait(by("c").from(ONE).tag("blocked"));
    assert!(s.core.is_bound(client(ONE)));
    close(&mut s, ONE);
    assert!(!s.core.is_bound(client(ONE)) && s.core.sessions.is_empty());
    assert!(s.core.queues.get(blocked).is_none());
    assert_eq!(s.held_on(&key(0, "j")), None);
    // A plain lease goes on.
    assert!(s.held_on(&key(0, "i")).is_some());
    s.release("a").unwrap();
    assert_eq!(said(&mut s), Vec::<String>::new());
    assert_eq!(s.held(), None);
}
