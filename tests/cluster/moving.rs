//! A cluster: a lock follows its slot.

use std::time::Duration;

use crate::support::ask::Ask;
use crate::support::eventually;
use crate::support::locks::{code, int, token, Say, Waiter};
use crate::support::look::Bound;
use crate::support::nodes::{id, two_nodes};
use crate::support::setup::cluster;

#[test]
fn a_lease_that_ends_while_its_slot_migrates_is_handed_on_if_the_slot_stays() {
    let (one, two) = two_nodes();
    let (mut here, mut there) = (one.raw(), two.raw());
    let (here_id, there_id) = (id(&mut here), id(&mut there));
    let slot = int(here.say("CLUSTER KEYSLOT k"));
    token(here.say("RLOCK.ACQUIRE k a 100000"));
    let mut waiter = Waiter::new(&one, "k", "b");
    there.say(&format!("CLUSTER SETSLOT {slot} IMPORTING {here_id}"));
    here.say(&format!("CLUSTER SETSLOT {slot} MIGRATING {there_id}"));
    // Only now: before, its end would let the waiter in.
    assert_eq!(int(here.say("RLOCK.RENEW k a 200")), 1);
    // Gone here, it may live on there: the try is sent there, nobody is granted.
    eventually("the lease is over", || {
        let reply = here.say("RLOCK.ACQUIRE k c 1");
        matches!(&reply, redis::Value::ServerError(error) if error.code() == "ASK")
    });
    here.say(&format!("CLUSTER SETSLOT {slot} STABLE"));
    there.say(&format!("CLUSTER SETSLOT {slot} STABLE"));
    waiter.token();
}

#[test]
fn a_turn_that_ends_while_its_slot_migrates_lets_nobody_in_before_the_slot_stays() {
    let (one, two) = two_nodes();
    let (mut here, mut there) = (one.raw(), two.raw());
    let (here_id, there_id) = (id(&mut here), id(&mut there));
    let slot = int(here.say("CLUSTER KEYSLOT k"));
    here.say("CONFIG SET rlock.redisson-turn 2000");
    let mut subscriber = one.raw();
    // The turn on `later` begins after that on `k`, and so it ends after it.
    for key in ["k", "later"] {
        let channel = format!("redisson_lock__channel:{{{key}}}");
        subscriber.call(&["SSUBSCRIBE", &channel]);
        token(here.say(&format!("RLOCK.ACQUIRE {key} a 100000")));
        assert_eq!(int(here.say(&format!("RLOCK.RELEASE {key} a"))), 0);
    }
    let mut waiter = Waiter::new(&one, "k", "b");
    let mut last = Waiter::new(&one, "later", "b");
    there.say(&format!("CLUSTER SETSLOT {slot} IMPORTING {here_id}"));
    here.say(&format!("CLUSTER SETSLOT {slot} MIGRATING {there_id}"));
    last.token();
    // Free here, it may be held there.
    assert!(waiter.client.read_within(Duration::ZERO).is_none());
    here.say(&format!("CLUSTER SETSLOT {slot} STABLE"));
    there.say(&format!("CLUSTER SETSLOT {slot} STABLE"));
    waiter.token();
}

#[test]
fn a_lock_moves_with_its_slot_and_its_waiters_are_sent_after_it() {
    let (one, two) = two_nodes();
    let (mut here, mut there) = (one.raw(), two.raw());
    let (here_id, there_id) = (id(&mut here), id(&mut there));
    let slot = int(here.say("CLUSTER KEYSLOT k"));
    token(here.say("RLOCK.ACQUIRE k a 100000"));
    let mut waiter = Waiter::new(&one, "k", "b");
    there.say(&format!("CLUSTER SETSLOT {slot} IMPORTING {here_id}"));
    here.say(&format!("CLUSTER SETSLOT {slot} MIGRATING {there_id}"));
    here.say(&format!("MIGRATE 127.0.0.1 {} k 0 5000", two.port()));
    there.say(&format!("CLUSTER SETSLOT {slot} NODE {there_id}"));
    here.say(&format!("CLUSTER SETSLOT {slot} NODE {there_id}"));
    // Not granted: the holder lives on.
    assert_eq!(code(&waiter.client.read()), "MOVED");
    assert_eq!(int(there.say("RLOCK.RELEASE k a")), 0);
    one.alive();
    two.alive();
}

#[test]
fn a_connection_whose_lock_moves_with_its_slot_is_closed() {
    let (one, two) = two_nodes();
    let (mut here, mut there) = (one.raw(), two.raw());
    let (here_id, there_id) = (id(&mut here), id(&mut there));
    let slot = int(here.say("CLUSTER KEYSLOT k"));
    let mut held = Bound::new(&one, "k", "a");
    let mut stays = Bound::new(&one, "other", "a");
    there.say(&format!("CLUSTER SETSLOT {slot} IMPORTING {here_id}"));
    here.say(&format!("CLUSTER SETSLOT {slot} MIGRATING {there_id}"));
    held.is_open();
    here.say(&format!("MIGRATE 127.0.0.1 {} k 0 5000", two.port()));
    there.say(&format!("CLUSTER SETSLOT {slot} NODE {there_id}"));
    here.say(&format!("CLUSTER SETSLOT {slot} NODE {there_id}"));
    assert!(held.is_closed());
    // It is its owner's there, with the lease that it had.
    assert_eq!(int(there.say("RLOCK.RENEW k a 100000 WATCHDOG")), 1);
    stays.is_open();
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
