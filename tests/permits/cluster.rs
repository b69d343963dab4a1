//! Permits in a cluster: they go with their slot, for all of them is one hash.

use crate::support::{
    both_ways, cluster, code, eventually, now_ms, two_nodes, Ask, Bound, Move, Session, Way, LONG,
};

both_ways!(they_are_acquired_waited_for_and_given_back);
fn they_are_acquired_waited_for_and_given_back(by: Way) {
    let server = cluster();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
    client.int("RLOCK.ACQUIRE k b 1500 LIMIT 4");
    let ends = client.permits_end("k", "b");
    let mut one = by.permits(&server, "k", "c", "LIMIT 4");
    let mut two = by.permits(&server, "k", "d", "LIMIT 4 PERMITS 2");
    one.token();
    assert!(now_ms() >= ends);
    client.give_back("k", "a", 2);
    two.token();
    assert_eq!(client.permits("k"), "a=1 c=1 d=2 mode=permits 4 4 4");
    client.int("RLOCK.LIMIT k 5");
    client.take_permits("k", "e", "LIMIT 4");
    assert_eq!(client.int("RLOCK.FORCE k"), 1);
    client.is_free("k");
}

both_ways!(they_move_with_their_slot_and_waiters_are_sent_after_them);
fn they_move_with_their_slot_and_waiters_are_sent_after_them(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.take_permits("k", "a", "LIMIT 4 PERMITS 2");
    slot.here.int("RLOCK.ACQUIRE k b 6000 LIMIT 4 PERMITS 2");
    slot.here.int("RLOCK.LIMIT k 5");
    let before = slot.here.hash("k");
    let ends = slot.here.permits_end("k", "b");
    let mut waiter = by.permits(&one, "k", "c", "LIMIT 4 PERMITS 2");
    slot.begin();
    slot.over("k");
    slot.arrive();
    assert_eq!(code(&waiter.end()), "MOVED");
    assert_eq!(slot.there.hash("k"), before);
    assert!(slot.there.deadline("k") >= slot.there.permits_end("k", "a"));
    // All is as it was: who waits there gets what is over, when it is over.
    assert!(slot
        .there
        .refused(&format!("RLOCK.ACQUIRE k c {LONG} LIMIT 4 PERMITS 2")));
    assert!(now_ms() < ends, "this machine is too slow for the test");
    let mut waiter = Way::Block.permits(&two, "k", "c", "LIMIT 4 PERMITS 3");
    waiter.token();
    assert!(now_ms() >= ends);
    assert_eq!(slot.there.permits("k"), "a=2 c=3 mode=permits 4 5 5");
    assert_eq!(slot.there.give_back("k", "a", 2), 0);
    one.alive();
    two.alive();
}

#[test]
fn while_the_slot_is_on_its_way_holders_find_them_where_they_are() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.take_permits("k", "a", "LIMIT 4 PERMITS 2");
    slot.here.take_permits("k", "b", "LIMIT 4");
    slot.begin();
    assert_eq!(slot.int(&format!("RLOCK.RENEW k a {LONG} PERMITS")), 1);
    assert_eq!(slot.int("RLOCK.RELEASE k a PERMITS"), 1);
    assert!(slot.token(&format!("RLOCK.ACQUIRE k c {LONG} LIMIT 4")) > 0);
    slot.over("k");
    assert_eq!(slot.int(&format!("RLOCK.RENEW k a {LONG} PERMITS")), 1);
    assert_eq!(slot.int("RLOCK.RELEASE k a PERMITS"), 0);
    assert!(slot.token(&format!("RLOCK.ACQUIRE k d {LONG} LIMIT 4 PERMITS 2")) > 0);
    slot.arrive();
    assert_eq!(slot.there.permits("k"), "b=1 c=1 d=2 mode=permits 4 4 4");
    assert!(slot.there.refused("RLOCK.ACQUIRE k e 1000 LIMIT 4"));
    assert_eq!(slot.there.give_back("k", "d", 2), 0);
}

#[test]
fn who_watches_them_is_notified_when_their_slot_moves() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    let mut bound = Bound::with(&one, &format!("k a {LONG} LIMIT 4 PERMITS 2"));
    let mut session = Session::new(&one);
    session.hold("k", "b", "LIMIT 4", "t");
    slot.begin();
    slot.over("k");
    slot.arrive();
    assert!(bound.client.is_closed());
    assert_eq!(session.next(), "lost t moved");
    let renewed = slot
        .there
        .int(&format!("RLOCK.RENEW k a {LONG} PERMITS WATCHDOG"));
    assert_eq!(renewed, 1);
    assert_eq!(slot.there.permits("k"), "a=2 b=1 mode=permits 4 4 3");
}

both_ways!(a_slot_that_stays_gives_the_queue_what_ended_meanwhile);
fn a_slot_that_stays_gives_the_queue_what_ended_meanwhile(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.take_permits("k", "a", "LIMIT 2 PERMITS 2");
    let mut waiter = by.permits(&one, "k", "b", "LIMIT 2");
    slot.begin();
    assert_eq!(slot.here.int("RLOCK.RENEW k a 300 PERMITS"), 1);
    slot.here.int("PEXPIRE k 300");
    eventually("the lease is over", || slot.here.int("DBSIZE") == 0);
    slot.stay();
    waiter.token();
    assert_eq!(slot.here.permits("k"), "b=1 mode=permits 2 2 1");
}
