//! What somebody does by hand to the TTL of the key.

use crate::support::{both_ways, now_ms, pass, Ask, Listener, RawClient, Server, Way, LONG};

/// `a` has 2 of 4 for a while, `b` 1 for a little longer, `c` one for long: when the first
/// two end.
fn three(client: &mut RawClient) -> [i64; 2] {
    client.succeed(&[
        "RLOCK.ACQUIRE k a 1000 LIMIT 4 PERMITS 2".to_owned(),
        "RLOCK.ACQUIRE k b 1400 LIMIT 4".to_owned(),
        format!("RLOCK.ACQUIRE k c {LONG} LIMIT 4"),
    ]);
    ["a", "b"].map(|owner| client.permits_end("k", owner))
}

both_ways!(without_a_ttl_owners_still_end_one_by_one);
fn without_a_ttl_owners_still_end_one_by_one(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let [a, b] = three(&mut client);
    let mut events = Listener::keyspace(&server, 0);
    assert_eq!(client.int("PERSIST k"), 1);
    let mut two = by.permits(&server, "k", "x", "LIMIT 4 PERMITS 2");
    let mut one = by.permits(&server, "k", "y", "LIMIT 4");
    two.token();
    assert!(now_ms() >= a);
    one.token();
    assert!(now_ms() >= b);
    assert_eq!(client.permits("k"), "c=1 mode=permits 4 4 4 x=2 y=1");
    assert_eq!(events.count("rlock.expired", "k"), 2);
    client.give_back("k", "x", 2);
    client.give_back("k", "y", 1);
    client.give_back("k", "c", 1);
    client.nothing_left("k");
}

#[test]
fn without_a_ttl_the_key_goes_with_the_last_lease() {
    let server = Server::start();
    let mut client = server.raw();
    client.succeed(&[
        "RLOCK.ACQUIRE k a 300 LIMIT 4 PERMITS 2",
        "RLOCK.ACQUIRE k b 600 LIMIT 4",
        "PERSIST k",
    ]);
    let ends = client.permits_end("k", "b");
    client.goes_free("k");
    assert!(now_ms() >= ends);
    client.nothing_left("k");
}

both_ways!(a_shorter_ttl_ends_all_together);
fn a_shorter_ttl_ends_all_together(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["a", "b", "c"] {
        client.take_permits("k", owner, "LIMIT 4");
    }
    let mut next = by.permits(&server, "k", "x", "LIMIT 4 PERMITS 2");
    let mut last = by.permits(&server, "k", "y", "LIMIT 4 PERMITS 3");
    let mut events = Listener::keyspace(&server, 0);
    client.int("PEXPIRE k 300");
    let ends = client.ends("k");
    next.token();
    assert!(now_ms() >= ends);
    assert_eq!(client.permits("k"), "mode=permits 4 4 2 x=2");
    assert!(client.deadline("k") > now_ms() + LONG / 2);
    assert_eq!(events.count("rlock.expired", "k"), 3, "each is told of");
    last.still_waits();
    client.give_back("k", "x", 2);
    last.token();
}

#[test]
fn a_longer_ttl_changes_no_lease() {
    let server = Server::start();
    let mut client = server.raw();
    let [a, b] = three(&mut client);
    client.int("PEXPIRE k 900000");
    let key = client.deadline("k");
    pass(a);
    client.permits_become("k", "b=1 c=1 mode=permits 4 4 2");
    pass(b);
    client.permits_become("k", "c=1 mode=permits 4 4 1");
    assert_eq!(client.deadline("k"), key);
    assert_eq!(client.int("RLOCK.RELEASE k c PERMITS"), 0);
    client.nothing_left("k");
}

#[test]
fn a_ttl_that_is_too_short_is_mended_by_who_takes_more() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 4");
    client.int("PEXPIRE k 60000");
    client.take_permits("k", "b", "LIMIT 4");
    assert_eq!(client.deadline("k"), client.permits_end("k", "b"));
    client.int("PEXPIRE k 60000");
    client.int(&format!("RLOCK.RENEW k a {LONG} PERMITS"));
    assert_eq!(client.deadline("k"), client.permits_end("k", "a"));
}
