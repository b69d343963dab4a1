//! An owner that holds permits and wants more of them.

use crate::support::{both_ways, now_ms, Ask, Listener, Server, Way, LONG};

both_ways!(it_waits_behind_those_who_came_before);
fn it_waits_behind_those_who_came_before(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.take_permits("k", "a", "LIMIT 3 PERMITS 2");
    client.take_permits("k", "b", "LIMIT 3");
    let mut ahead = by.permits(&server, "k", "c", "LIMIT 3");
    let mut more = by.permits(&server, "k", "a", "LIMIT 3");
    client.give_back("k", "b", 1);
    ahead.token();
    more.still_waits();
    assert_eq!(client.permits("k"), "a=2 c=1 mode=permits 3 3 3");
    client.give_back("k", "c", 1);
    assert!(more.token() > first);
    assert_eq!(client.permits("k"), "a=3 mode=permits 3 3 3");
    assert_eq!(client.int("RLOCK.RELEASE k a PERMITS ALL"), 0);
    client.nothing_left("k");
}

both_ways!(its_lease_ends_while_it_waits_and_it_has_what_it_waited_for);
fn its_lease_ends_while_it_waits_and_it_has_what_it_waited_for(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 3 PERMITS 2");
    let first = client.int("RLOCK.ACQUIRE k a 1000 LIMIT 3");
    let ends = client.permits_end("k", "a");
    let mut events = Listener::keyspace(&server, 0);
    let mut more = by.permits(&server, "k", "a", "LIMIT 3");
    let token = more.token();
    assert!(now_ms() >= ends && token > first);
    assert_eq!(client.permits("k"), "a=1 b=2 mode=permits 3 3 3");
    assert!(client.permits_end("k", "a") > ends + LONG / 2);
    assert_eq!(client.known_token("k", "a", "permits"), Some(token));
    assert_eq!(events.count("rlock.expired", "k"), 1);
    assert_eq!(client.give_back("k", "a", 1), 0);
}

both_ways!(its_lease_ends_and_another_stands_before_it);
fn its_lease_ends_and_another_stands_before_it(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 2");
    client.int("RLOCK.ACQUIRE k a 1000 LIMIT 2");
    let mut ahead = by.permits(&server, "k", "c", "LIMIT 2");
    let mut more = by.permits(&server, "k", "a", "LIMIT 2");
    ahead.token();
    more.still_waits();
    assert_eq!(client.permits("k"), "b=1 c=1 mode=permits 2 2 2");
    client.give_back("k", "b", 1);
    more.token();
    assert_eq!(client.permits("k"), "a=1 c=1 mode=permits 2 2 2");
}

#[test]
fn what_it_has_is_one_entry_with_the_newest_token() {
    let server = Server::start();
    let mut client = server.raw();
    let tokens: Vec<i64> = (0..3)
        .map(|_| client.take_permits("k", "a", "LIMIT 9"))
        .collect();
    let held = client.only("k");
    assert_eq!((held.mode.as_str(), held.holds), ("permits", 3));
    assert_eq!(held.token, tokens.last().copied());
    // Each of them means a hold that is there.
    let line = format!("RLOCK.RELEASE k a PERMITS IFTOKEN {}", tokens[2]);
    assert_eq!(client.int(&line), 2);
}
