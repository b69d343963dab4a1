//! A replica has the same hash with the same TTL after each step, and goes on as a master.

use crate::support::{
    eventually, now_ms, pair, same_on_both, unharmed, Ask, Server, Waiter, Way, LONG,
};

#[test]
fn a_replica_has_the_same_after_each_step() {
    let (server, replica) = pair(&[]);
    let (mut client, mut copy) = (server.raw(), replica.raw());
    for request in [
        "RLOCK.ACQUIRE k a 60000 LIMIT 4 PERMITS 2",
        "RLOCK.ACQUIRE k b 90000 LIMIT 4",
        "RLOCK.ACQUIRE k b 50000 LIMIT 4",
        "RLOCK.ACQUIRE k c 50000 LIMIT 4",
        "RLOCK.RENEW k a 120000 PERMITS",
        "RLOCK.RENEW k a 30000 PERMITS",
        "RLOCK.LIMIT k 6",
        "RLOCK.ACQUIRE k c 200000 LIMIT 4 PERMITS 2 ONCE",
        "RLOCK.ACQUIRE k c 300000 LIMIT 4 PERMITS 2 ONCE",
        "RLOCK.RELEASE k a PERMITS",
        "RLOCK.RELEASE k a PERMITS",
        "RLOCK.LIMIT k 1",
        "RLOCK.RELEASE k b PERMITS ALL",
        "RLOCK.RELEASE k c PERMITS ALL",
        "RLOCK.ACQUIRE k c 300000 LIMIT 5",
        "RLOCK.FORCE k",
    ] {
        client.ask(request);
        same_on_both(&mut client, &mut copy, request);
    }
    client.take_permits("k", "a", "LIMIT 2 PERMITS 2");
    let mut waiters =
        ["b", "c", "d"].map(|owner| Way::Block.permits(&server, "k", owner, "LIMIT 2"));
    client.give_back("k", "a", 1);
    waiters[0].token();
    same_on_both(&mut client, &mut copy, "a grant");
    client.int("RLOCK.RENEW k a 500 PERMITS");
    waiters[1].token();
    same_on_both(&mut client, &mut copy, "an end of a lease");
    client.int("RLOCK.LIMIT k 3");
    waiters[2].token();
    same_on_both(&mut client, &mut copy, "a limit");
    client.int("PEXPIRE k 300");
    client.goes_free("k");
    same_on_both(&mut client, &mut copy, "the end of all");
    unharmed(&server, &replica, "k");
}

#[test]
fn a_replica_shows_them_and_changes_nothing() {
    let (server, replica) = pair(&[]);
    let (mut client, mut copy) = (server.raw(), replica.raw());
    client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
    client.take_permits("k", "b", "LIMIT 4");
    same_on_both(&mut client, &mut copy, "two grants");
    for request in [
        "RLOCK.ACQUIRE k c 60000 LIMIT 4",
        "RLOCK.RELEASE k a PERMITS",
        "RLOCK.RENEW k a 60000 PERMITS",
        "RLOCK.LIMIT k 9",
    ] {
        assert_eq!(copy.code(request), "READONLY", "{request}");
    }
    assert_eq!(copy.held_by("k"), "a permits 2, b permits 1");
    assert_eq!(copy.pool("k").available, 1);
    assert_eq!(copy.info("k").holders[0].token, None);
    // An owner whose lease is over is left where it is, and left out.
    client.int("RLOCK.RENEW k a 1000 PERMITS");
    let ends = client.permits_end("k", "a");
    eventually("it is there", || copy.permits_end("k", "a") == ends);
    server.pause_process();
    eventually("the lease is over", || now_ms() > ends + 1);
    assert_eq!(copy.held_by("k"), "b permits 1");
    assert_eq!(copy.permits("k"), "a=2 b=1 mode=permits 4 4 3");
    server.resume_process();
    client.permits_become("k", "b=1 mode=permits 4 4 1");
    same_on_both(&mut client, &mut copy, "the end of a lease");
}

#[test]
fn a_replica_that_is_promoted_goes_on() {
    let (server, replica) = pair(&[]);
    let (mut client, mut copy) = (server.raw(), replica.raw());
    client.take_permits("k", "c", "LIMIT 4");
    client.int("RLOCK.ACQUIRE k a 2500 LIMIT 4 PERMITS 2");
    client.int("RLOCK.ACQUIRE k b 4000 LIMIT 4");
    client.int("RLOCK.LIMIT k 5");
    let ends = ["a", "b"].map(|owner| client.permits_end("k", owner));
    same_on_both(&mut client, &mut copy, "all of it");
    server.pause_process();
    copy.ok("REPLICAOF NO ONE");
    assert!(now_ms() < ends[0], "this machine is too slow for the test");
    assert!(copy.refused(&format!("RLOCK.ACQUIRE k x {LONG} LIMIT 4 PERMITS 2")));
    let mut first = Waiter::with(&replica, &format!("k x {LONG} LIMIT 4 PERMITS 3 BLOCK 0"));
    first.token();
    assert!(now_ms() >= ends[0]);
    assert_eq!(copy.permits("k"), "b=1 c=1 mode=permits 4 5 5 x=3");
    copy.permits_become("k", "c=1 mode=permits 4 5 4 x=3");
    assert!(now_ms() >= ends[1]);
    assert_eq!(copy.counter("rlock_expired"), 2);
    assert_eq!(copy.int(&format!("RLOCK.RENEW k c {LONG} PERMITS")), 1);
    assert_eq!(copy.give_back("k", "x", 3), 0);
    assert_eq!(copy.give_back("k", "c", 1), 0);
    copy.nothing_left("k");
    server.resume_process();
}

#[test]
fn a_server_that_turns_replica_sends_its_waiters_away() {
    let (server, master) = (Server::start(), Server::start());
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2 PERMITS 2");
    let mut blocked = Way::Block.permits(&server, "k", "b", "LIMIT 2");
    let mut queued = Way::Queue.permits(&server, "k", "c", "LIMIT 2");
    client.ok(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    for waiter in [&mut blocked, &mut queued] {
        assert_eq!(crate::support::code(&waiter.end()), "UNBLOCKED");
    }
    server.unharmed();
}

/// Replicas need not have the module: what they get is plain data.
#[test]
fn a_replica_without_the_module_has_the_same() {
    let server = Server::start();
    let replica = Server::start_bare(&["--replicaof", "127.0.0.1", &server.port().to_string()]);
    server.counts_its_replica();
    let (mut client, mut copy) = (server.raw(), replica.raw());
    client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
    client.int("RLOCK.ACQUIRE k b 1000 LIMIT 4");
    client.int("RLOCK.LIMIT k 6");
    same_on_both(&mut client, &mut copy, "two grants");
    client.permits_become("k", "a=2 mode=permits 4 6 2");
    same_on_both(&mut client, &mut copy, "the end of a lease");
    assert_eq!(client.give_back("k", "a", 2), 0);
    same_on_both(&mut client, &mut copy, "the last release");
}
