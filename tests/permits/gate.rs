//! A server that would refuse a client's write grants no permits and expires none; it does
//! both as soon as it may.

use crate::support::{
    both_ways, eventually, now_ms, pair, pass, unharmed, Ask, Listener, RawClient, Server, Way,
};

/// `a` and `b` have 2 of 4 each.
#[track_caller]
fn hold(client: &mut RawClient) {
    for owner in ["a", "b"] {
        client.take_permits("k", owner, "LIMIT 4 PERMITS 2");
    }
}

/// Those of `a` end soon, behind the gate: when. All in one write.
#[track_caller]
fn ends_behind(client: &mut RawClient, gate: &str) -> i64 {
    let replies = client.succeed(&["RLOCK.RENEW k a 300 PERMITS", "HGET k a", gate]);
    let field = crate::support::text(replies[1].clone());
    field[2..].parse().expect("a deadline")
}

/// Nothing has happened yet; then the gate opens, and all does.
#[track_caller]
fn waits_for_the_gate(by: Way, server: &Server, gate: &str, open: &str) {
    let mut client = server.raw();
    let mut events = Listener::keyspace(server, 0);
    hold(&mut client);
    let mut two = ["c", "d", "e"].map(|owner| by.permits(server, "k", owner, "LIMIT 4"));
    let ends = ends_behind(&mut client, gate);
    pass(ends + 500);
    for waiter in &mut two {
        waiter.still_waits();
    }
    assert_eq!(client.permits("k"), "a=2 b=2 mode=permits 4 4 4", "{gate}");
    assert_eq!(client.held_by("k"), "b permits 2", "{gate}");
    let opened = now_ms();
    client.ok(open);
    two[0].token();
    two[1].token();
    assert!(now_ms() < opened + 5000, "not at once");
    two[2].still_waits();
    assert_eq!(
        client.permits("k"),
        "b=2 c=1 d=1 mode=permits 4 4 4",
        "{gate}"
    );
    assert!(
        client.permits_end("k", "c") >= opened + 100_000,
        "from the grant on"
    );
    let mut told = 0;
    eventually("the lease's end is told of", || {
        told += events.count("rlock.expired", "k");
        told == 1
    });
    client.give_back("k", "b", 2);
    two[2].token();
    client.ok("FLUSHALL");
}

both_ways!(without_enough_replicas);
fn without_enough_replicas(by: Way) {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let shut = "CONFIG SET min-replicas-to-write 2";
    waits_for_the_gate(by, &server, shut, "CONFIG SET min-replicas-to-write 0");
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2");
    client.ok(shut);
    for request in [
        "RLOCK.ACQUIRE k b 1000 LIMIT 2",
        "RLOCK.RELEASE k a PERMITS",
        "RLOCK.LIMIT k 9",
    ] {
        assert_eq!(client.code(request), "NOREPLICAS", "{request}");
    }
    assert_eq!(client.int("RLOCK.CANCEL k a PERMITS"), 0);
    unharmed(&server, &replica, "k");
}

both_ways!(while_writes_are_paused);
fn while_writes_are_paused(by: Way) {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    waits_for_the_gate(by, &server, "CLIENT PAUSE 60000 WRITE", "CLIENT UNPAUSE");
    unharmed(&server, &replica, "k");
}

#[test]
fn all_that_end_behind_it_are_announced_once() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    hold(&mut client);
    client.int("PEXPIRE k 300");
    let ends = ends_behind(&mut client, "CONFIG SET min-replicas-to-write 2");
    pass(ends + 500);
    assert_eq!(events.count("rlock.expired", "k"), 0);
    client.ok("CONFIG SET min-replicas-to-write 0");
    client.goes_free("k");
    let mut told = 0;
    eventually("both are told of", || {
        told += events.count("rlock.expired", "k");
        told >= 2
    });
    pass(now_ms() + 100);
    assert_eq!(told + events.count("rlock.expired", "k"), 2);
    unharmed(&server, &replica, "k");
}

#[test]
fn what_comes_back_as_it_shuts_lets_in_when_it_opens() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut client = server.raw();
    hold(&mut client);
    let mut waiter = Way::Queue.permits(&server, "k", "c", "LIMIT 4 PERMITS 2");
    // What is done by hand is heard of behind the gate.
    client.succeed(&[
        "MULTI",
        "HDEL k a",
        "CONFIG SET min-replicas-to-write 2",
        "EXEC",
    ]);
    pass(now_ms() + 200);
    waiter.still_waits();
    client.ok("CONFIG SET min-replicas-to-write 0");
    waiter.token();
    assert_eq!(client.permits("k"), "b=2 c=2 mode=permits 4 4 4");
    unharmed(&server, &replica, "k");
}
