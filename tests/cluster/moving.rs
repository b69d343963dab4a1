//! A cluster: a lock follows its slot.

use crate::support::{both_ways, cluster, code, eventually, two_nodes, Ask, Bound, Move, Way};

both_ways!(a_lease_that_ends_while_its_slot_migrates_is_handed_on_if_the_slot_stays);
fn a_lease_that_ends_while_its_slot_migrates_is_handed_on_if_the_slot_stays(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.token("RLOCK.ACQUIRE k a 100000");
    let mut waiter = by.wait(&one, "k", "b");
    slot.begin();
    // Only now: before, its end would let the waiter in.
    assert_eq!(slot.here.int("RLOCK.RENEW k a 200"), 1);
    // No command on `k`: one that the server lets in at the last moment may end the
    // lease itself, and hand on the lock that never was away.
    eventually("the lease is over", || slot.here.int("DBSIZE") == 0);
    // Gone here, it may live on there: the try is sent there, nobody is granted.
    assert_eq!(slot.here.code("RLOCK.ACQUIRE k c 1"), "ASK");
    slot.stay();
    waiter.token();
}

both_ways!(a_yield_that_ends_while_its_slot_migrates_lets_nobody_in_before_the_slot_stays);
fn a_yield_that_ends_while_its_slot_migrates_lets_nobody_in_before_the_slot_stays(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.ask("CONFIG SET rlock.redisson-yield 2000");
    let mut subscriber = one.raw();
    // The turn on `later` begins after that on `k`, and so it ends after it.
    for key in ["k", "later"] {
        let channel = format!("redisson_lock__channel:{{{key}}}");
        subscriber.ask(&["SSUBSCRIBE", &channel]);
        one.sees_subscribers();
        slot.here.token(&format!("RLOCK.ACQUIRE {key} a 100000"));
        assert_eq!(slot.here.int(&format!("RLOCK.RELEASE {key} a")), 0);
    }
    let mut waiter = by.wait(&one, "k", "b");
    let mut last = by.wait(&one, "later", "b");
    slot.begin();
    last.token();
    // Free here, it may be held slot.there.
    waiter.still_waits();
    slot.stay();
    waiter.token();
}

both_ways!(a_lock_moves_with_its_slot_and_its_waiters_are_sent_after_it);
fn a_lock_moves_with_its_slot_and_its_waiters_are_sent_after_it(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.token("RLOCK.ACQUIRE k a 100000");
    let mut waiter = by.wait(&one, "k", "b");
    slot.begin();
    slot.over("k");
    slot.arrive();
    // Not granted: the holder lives on.
    assert_eq!(code(&waiter.end()), "MOVED");
    assert_eq!(slot.there.int("RLOCK.RELEASE k a"), 0);
    one.alive();
    two.alive();
}

#[test]
fn a_connection_whose_lock_moves_with_its_slot_is_closed() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    let mut held = Bound::new(&one, "k", "a");
    let mut stays = Bound::new(&one, "other", "a");
    slot.begin();
    held.client.in_step();
    slot.over("k");
    slot.arrive();
    assert!(held.client.is_closed());
    // It is its owner's there, with the lease that it had.
    assert_eq!(slot.there.int("RLOCK.RENEW k a 100000 WATCHDOG"), 1);
    stays.client.in_step();
}

#[test]
fn whoever_is_granted_a_lock_whose_lease_ended_keeps_it() {
    let server = cluster();
    let mut client = server.raw();
    let mut held = Vec::new();
    for (mode, key) in [("", "plain"), ("WRITE", "shared")] {
        client.int(&format!("RLOCK.ACQUIRE {key} a 20 {mode}"));
        let mut waiter = server.raw();
        let acquire = format!("RLOCK.ACQUIRE {key} b 60000 {mode}");
        let token = waiter.int(&format!("{acquire} BLOCK 0 WATCHDOG"));
        held.push((waiter, acquire, token));
    }
    // What is heard after the grant is attended to before another lease ends.
    client.int("RLOCK.ACQUIRE other a 20");
    eventually("the other lease has ended", || {
        client.text("INFO rlock").contains("rlock_expired:3")
    });
    for (waiter, acquire, token) in &mut held {
        assert_eq!(waiter.int(acquire), *token, "{acquire}");
    }
    assert!(client.text("INFO rlock").contains("rlock_watchdog_holds:2"));
}
