//! HEARTBEAT: while the slot of a lock moves nobody is silent there.

use crate::support::{
    both_ways, code, now_ms, pass, two_nodes, Ask, Bound, Move, Server, Waiter, Way,
};

const LEASE: i64 = 1500;

/// `a` holds `k`, `b` waits, and the slot is on its way. What `a` has asked for is over, and it is
/// silent from the begin of the move on, longer than it may be.
fn silent_on_the_way(by: Way, one: &Server, two: &Server) -> (Move, Bound, Waiter) {
    let mut slot = Move::before("k", one, two);
    let mut held = Bound::with(one, &format!("k a {LEASE}"));
    held.client.ok("RLOCK.HEARTBEAT 600000");
    let mut waiter = by.wait(one, "k", "b");
    pass(now_ms() + LEASE + 100);
    slot.begin();
    held.client.ok("RLOCK.HEARTBEAT 1");
    pass(now_ms() + 1000);
    waiter.still_waits();
    held.client.in_step();
    assert_eq!(slot.here.only("k").token, Some(held.token));
    (slot, held, waiter)
}

both_ways!(who_is_silent_while_its_slot_moves_away_loses_nothing_by_that);
fn who_is_silent_while_its_slot_moves_away_loses_nothing_by_that(by: Way) {
    let (one, two) = two_nodes();
    let (mut slot, mut held, mut waiter) = silent_on_the_way(by, &one, &two);
    slot.over("k");
    slot.arrive();
    assert_eq!(code(&waiter.end()), "MOVED");
    assert!(held.client.is_closed());
    // It is its owner's there, who watches it anew, and is heard of by another connection.
    let mut again = two.raw();
    assert_eq!(again.int(&format!("RLOCK.RENEW k a {LEASE} WATCHDOG")), 1);
    again.ok("RLOCK.HEARTBEAT 600000");
    // Sessions' channels are the first node's.
    let mut waiter = Waiter::new(&two, "k", "b");
    pass(now_ms() + LEASE + 500);
    waiter.still_waits();
    assert_eq!(slot.there.only("k").owner, "a");
    for client in [&mut slot.here, &mut slot.there] {
        assert_eq!(client.counter("rlock_lost_silent"), 0);
    }
    again.ok("RLOCK.HEARTBEAT 1");
    waiter.token();
    assert!(again.is_closed());
}

both_ways!(who_is_silent_still_when_its_slot_stays_loses_then);
fn who_is_silent_still_when_its_slot_stays_loses_then(by: Way) {
    let (one, two) = two_nodes();
    let (mut slot, mut held, mut waiter) = silent_on_the_way(by, &one, &two);
    slot.stay();
    waiter.token();
    assert!(held.client.is_closed());
    assert_eq!(slot.here.counter("rlock_lost_silent"), 1);
}

both_ways!(who_is_heard_of_before_its_slot_stays_keeps_its_lock);
fn who_is_heard_of_before_its_slot_stays_keeps_its_lock(by: Way) {
    let (one, two) = two_nodes();
    let (mut slot, mut held, mut waiter) = silent_on_the_way(by, &one, &two);
    held.client.ok("RLOCK.HEARTBEAT 600000");
    slot.stay();
    pass(now_ms() + 1000);
    waiter.still_waits();
    held.client.in_step();
    assert_eq!(slot.here.counter("rlock_lost_silent"), 0);
}
