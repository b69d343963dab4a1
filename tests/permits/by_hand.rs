//! What somebody writes into the hash by hand, and could stand there, is taken as it is.

use crate::support::{both_ways, eventually, now_ms, Ask, Listener, RawClient, Server, Way, LONG};

/// A field for so many permits that end in so many ms.
fn field(permits: i64, ms: i64) -> String {
    format!("{permits}@{}", now_ms() + ms)
}

/// `a` has 2 of 4, `b` 2.
fn held(server: &Server) -> RawClient {
    let mut client = server.raw();
    for owner in ["a", "b"] {
        client.take_permits("k", owner, "LIMIT 4 PERMITS 2");
    }
    client
}

both_ways!(a_field_that_is_removed_gives_its_permits_back);
fn a_field_that_is_removed_gives_its_permits_back(by: Way) {
    let server = Server::start();
    let mut client = held(&server);
    let mut waiters: Vec<_> = ["w", "x", "y"]
        .iter()
        .map(|owner| by.permits(&server, "k", owner, "LIMIT 4"))
        .collect();
    let mut events = Listener::keyspace(&server, 0);
    client.int("HDEL k a");
    waiters[0].token();
    waiters[1].token();
    waiters[2].still_waits();
    assert_eq!(client.permits("k"), "b=2 mode=permits 4 4 4 w=1 x=1");
    assert_eq!(events.count("rlock.expired", "k"), 0);
    assert_eq!(client.code("RLOCK.RELEASE k a PERMITS"), "NOTHELD");
    // Without a waiter they are free for a try soon.
    client.int("HDEL k b");
    waiters[2].token();
    eventually("one more is free", || {
        !client.refused(&format!("RLOCK.ACQUIRE k z {LONG} LIMIT 4 ONCE"))
    });
    client.permits_become("k", "mode=permits 4 4 4 w=1 x=1 y=1 z=1");
}

#[test]
fn all_fields_that_are_removed_free_the_lock() {
    let server = Server::start();
    let mut client = held(&server);
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 9 PERMITS 9");
    assert_eq!(crate::support::code(&waiter.end()), "WRONGLIMIT");
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 4 PERMITS 4");
    client.int("HDEL k a b");
    waiter.token();
    assert_eq!(client.permits("k"), "c=4 mode=permits 4 4 4");
    client.int("HDEL k c");
    client.goes_free("k");
    client.nothing_left("k");
}

both_ways!(a_field_that_is_added_is_an_owner);
fn a_field_that_is_added_is_an_owner(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 5 PERMITS 2");
    client.int(&["HSET", "k", "new", &field(2, 60_000)]);
    // Whoever asks next sees that there is one more.
    assert!(client.refused("RLOCK.ACQUIRE k z 1000 LIMIT 5 PERMITS 5"));
    client.permits_become("k", "a=2 mode=permits 5 5 4 new=2");
    let mut waiter = by.permits(&server, "k", "b", "LIMIT 5 PERMITS 3");
    assert_eq!(client.held_by("k"), "a permits 2, new permits 2");
    waiter.still_waits();
    // It is that owner's, to renew and to release.
    assert_eq!(client.int("RLOCK.RENEW k new 90000 PERMITS"), 1);
    assert_eq!(client.give_back("k", "new", 1), 1);
    assert_eq!(client.give_back("k", "new", 1), 0);
    waiter.token();
    // Its lease ends as any.
    client.int(&["HSET", "k", "new", &field(1, 1500)]);
    assert!(client.refused("RLOCK.ACQUIRE k z 1000 LIMIT 5"));
    client.permits_become("k", "a=2 b=3 mode=permits 5 5 6 new=1");
    client.permits_become("k", "a=2 b=3 mode=permits 5 5 5");
    assert_eq!(client.counter("rlock_expired"), 1);
}

both_ways!(another_number_of_permits_is_counted);
fn another_number_of_permits_is_counted(by: Way) {
    let server = Server::start();
    let mut client = held(&server);
    let mut waiter = by.permits(&server, "k", "c", "LIMIT 4");
    client.int(&["HSET", "k", "a", &field(1, 60_000)]);
    waiter.token();
    assert_eq!(client.permits("k"), "a=1 b=2 c=1 mode=permits 4 4 4");
    client.int(&["HSET", "k", "b", &field(7, 60_000)]);
    client.permits_become("k", "a=1 b=7 c=1 mode=permits 4 4 9");
    assert_eq!(client.pool("k").available, 0);
    assert_eq!(client.int("RLOCK.RELEASE k b PERMITS ALL"), 0);
    client.permits_become("k", "a=1 c=1 mode=permits 4 4 2");
}

both_ways!(a_deadline_that_is_past_counts_as_run_out);
fn a_deadline_that_is_past_counts_as_run_out(by: Way) {
    let server = Server::start();
    let mut client = held(&server);
    let mut waiter = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 2");
    client.int(&["HSET", "k", "a", &field(2, -1000)]);
    waiter.token();
    assert_eq!(client.permits("k"), "b=2 c=2 mode=permits 4 4 4");
    assert_eq!(client.counter("rlock_expired"), 1);
    client.int(&["HSET", "k", "b", "2@0"]);
    client.permits_become("k", "c=2 mode=permits 4 4 2");
}

both_ways!(another_deadline_is_that_of_its_lease);
fn another_deadline_is_that_of_its_lease(by: Way) {
    let server = Server::start();
    let mut client = held(&server);
    let soon = field(2, 500);
    let mut waiter = by.permits(&server, "k", "c", "LIMIT 4");
    client.int(&["HSET", "k", "a", &soon]);
    waiter.token();
    let ends: i64 = soon[2..].parse().expect("ms");
    assert!(now_ms() >= ends);
    assert_eq!(client.permits("k"), "b=2 c=1 mode=permits 4 4 3");
    // Longer than the key lives: that ends all.
    client.int(&["HSET", "k", "b", &field(2, 900_000)]);
    client.int("PEXPIRE k 300");
    client.goes_free("k");
}

both_ways!(limits_that_are_changed_in_the_hash_are_taken_as_they_are);
fn limits_that_are_changed_in_the_hash_are_taken_as_they_are(by: Way) {
    let server = Server::start();
    let mut client = held(&server);
    let mut waiter = by.permits(&server, "k", "c", "LIMIT 4");
    client.int(&["HSET", "k", "mode", "permits 4 5 4"]);
    waiter.token();
    assert_eq!(client.permits("k"), "a=2 b=2 c=1 mode=permits 4 5 5");
    // What is out is counted, whatever is said.
    client.int(&["HSET", "k", "mode", "permits 4 5 0"]);
    client.permits_become("k", "a=2 b=2 c=1 mode=permits 4 5 5");
    client.int(&["HSET", "k", "mode", "permits 7 7 100"]);
    client.permits_become("k", "a=2 b=2 c=1 mode=permits 7 7 5");
    client.take_permits("k", "d", "LIMIT 7 PERMITS 2");
}

/// Newer servers can end a field by itself.
#[test]
fn a_field_that_the_server_ends_gives_its_permits_back() {
    let server = Server::start();
    if !server.version().ends_fields() {
        return;
    }
    let mut client = held(&server);
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 4 PERMITS 2");
    client.list("HPEXPIRE k 300 FIELDS 1 a");
    waiter.token();
    assert_eq!(client.permits("k"), "b=2 c=2 mode=permits 4 4 4");
    assert_eq!(client.code("RLOCK.RELEASE k a PERMITS"), "NOTHELD");
    client.list("HPEXPIRE k 100 FIELDS 3 b c mode");
    eventually("all of it is gone", || client.int("EXISTS k") == 0);
    client.take_permits("k", "a", "LIMIT 9");
    // Only the mode is left: rlock deletes a hash that the server may not be done with.
    client.take_permits("k", "b", "LIMIT 9");
    client.list("HPEXPIRE k 100 FIELDS 2 a b");
    eventually("who held it is gone", || client.int("EXISTS k") == 0);
    let mut waiter = {
        client.take_permits("k", "a", "LIMIT 1");
        Way::Block.permits(&server, "k", "b", "LIMIT 1")
    };
    client.list("HPEXPIRE k 100 FIELDS 1 a");
    waiter.token();
}

#[test]
fn a_hash_that_somebody_made_is_a_lock() {
    let server = Server::start();
    let mut client = server.raw();
    let made = |client: &mut RawClient| {
        client.int(&["HSET", "k", "mode", "permits 3 3 2", "a", &field(2, 60_000)]);
        client.int("PEXPIRE k 60000");
    };
    made(&mut client);
    assert!(client.refused("RLOCK.ACQUIRE k b 1000 LIMIT 3 PERMITS 2"));
    client.take_permits("k", "b", "LIMIT 3");
    assert_eq!(client.permits("k"), "a=2 b=1 mode=permits 3 3 3");
    assert_eq!(client.give_back("k", "a", 2), 0);
    client.int("RLOCK.FORCE k");
    made(&mut client);
    assert_eq!(client.pool("k").available, 1);
    assert_eq!(client.held_by("k"), "a permits 2");
    // Without a TTL it may be somebody's data.
    client.ok("FLUSHALL");
    client.int(&[
        "HSET",
        "data",
        "mode",
        "permits 3 3 2",
        "a",
        &field(2, 60_000),
    ]);
    for request in ["RLOCK.ACQUIRE data b 1000 LIMIT 3", "RLOCK.INFO data"] {
        assert_eq!(client.code(request), "WRONGTYPE", "{request}");
    }
    // One that nobody holds is free: nothing else looks so.
    client.int(&["HSET", "empty", "mode", "permits 3 3 0"]);
    client.int("PEXPIRE empty 60000");
    assert_eq!(client.held_by("empty"), "");
    client.take_permits("empty", "b", "LIMIT 3");
    assert_eq!(client.permits("empty"), "b=1 mode=permits 3 3 1");
}
