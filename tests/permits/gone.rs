//! Permits whose key goes: who waits is next at once.

use redis::Value;

use crate::support::{both_ways, each, now_ms, Ask, RawClient, Server, Way};

/// What makes the hash go.
const WAYS: [&str; 10] = [
    "RLOCK.FORCE k",
    "DEL k",
    "UNLINK k",
    "PEXPIREAT k 1",
    "PEXPIRE k 30",
    "RENAME k elsewhere",
    "MOVE k 5",
    "FLUSHDB",
    "FLUSHALL",
    "SWAPDB 0 6",
];

both_ways!(whoever_fits_comes_in_from_the_head_of_the_queue);
fn whoever_fits_comes_in_from_the_head_of_the_queue(by: Way) {
    each(&WAYS, |way, server, client| {
        client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
        client.take_permits("k", "b", "LIMIT 4");
        client.int("RLOCK.LIMIT k 5");
        let mut waiters: Vec<_> = [("p", 2), ("q", 2), ("r", 1)]
            .iter()
            .map(|(owner, n)| by.permits(server, "k", owner, &format!("LIMIT 4 PERMITS {n}")))
            .collect();
        client.succeed(&[way]);
        waiters[0].token();
        waiters[1].token();
        waiters[2].still_waits();
        assert_eq!(client.permits("k"), "mode=permits 4 4 4 p=2 q=2", "{way}");
        for owner in ["a", "b"] {
            let line = format!("RLOCK.RELEASE k {owner} PERMITS");
            assert_eq!(client.code(&line), "NOTHELD", "{way}");
        }
        client.give_back("k", "p", 1);
        waiters[2].token();
    });
}

both_ways!(a_key_that_became_something_else_keeps_its_waiters);
fn a_key_that_became_something_else_keeps_its_waiters(by: Way) {
    for (overwrite, free) in [
        ("SET k v", "DEL k"),
        ("SET k v", "FLUSHALL"),
        ("SET x v|RENAME x k", "DEL k"),
        ("RPUSH x v|COPY x k REPLACE", "RENAME k y"),
    ] {
        let server = Server::start();
        let mut client = server.raw();
        client.take_permits("k", "a", "LIMIT 2");
        client.take_permits("k", "b", "LIMIT 2");
        let mut two = by.permits(&server, "k", "c", "LIMIT 2 PERMITS 2");
        let mut one = by.permits(&server, "k", "d", "LIMIT 2");
        let lines: Vec<&str> = overwrite.split('|').collect();
        client.succeed(&lines);
        for request in [
            "RLOCK.ACQUIRE k x 1000 LIMIT 2",
            "RLOCK.ACQUIRE k x 1000 LIMIT 2 BLOCK 0",
            "RLOCK.RELEASE k a PERMITS",
            "RLOCK.RENEW k a 1000 PERMITS",
            "RLOCK.LIMIT k 9",
            "RLOCK.INFO k",
        ] {
            let line = client.error(request);
            assert!(line.starts_with("WRONGTYPE "), "{request}: {line}");
        }
        two.still_waits();
        client.ask(free);
        two.token();
        assert_eq!(client.permits("k"), "c=2 mode=permits 2 2 2", "{overwrite}");
        client.give_back("k", "c", 1);
        one.token();
    }
}

/// Another hash with permits in the place of the first: its owners hold them from now on.
#[test]
fn a_hash_that_is_put_in_its_place_is_what_it_says() {
    let server = Server::start();
    let mut client = server.raw();
    let replace = |client: &mut RawClient, way: &str| {
        client.ok("FLUSHALL");
        client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
        client.take_permits("other", "b", "LIMIT 9 PERMITS 2");
        client.take_permits("other", "c", "LIMIT 9 PERMITS 4");
        client.succeed(&[way]);
    };
    for way in ["RENAME other k", "COPY other k REPLACE"] {
        replace(&mut client, way);
        assert_eq!(client.held_by("k"), "b permits 2, c permits 4", "{way}");
        assert_eq!(client.code("RLOCK.RELEASE k a PERMITS"), "NOTHELD", "{way}");
        assert!(client.refused("RLOCK.ACQUIRE k x 1000 LIMIT 9 PERMITS 4"));
        client.take_permits("k", "x", "LIMIT 9 PERMITS 3");
        assert_eq!(client.give_back("k", "c", 4), 0);
        assert_eq!(client.permits("k"), "b=2 mode=permits 9 9 5 x=3", "{way}");
    }
}

#[test]
fn a_reload_keeps_holders_and_queue() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
    client.take_permits("k", "b", "LIMIT 4 PERMITS 2");
    client.int("RLOCK.LIMIT k 5");
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 4 PERMITS 3");
    let before = client.everything();
    client.ok("DEBUG RELOAD");
    assert_eq!(client.everything(), before);
    assert_eq!(client.held_by("k"), "a permits 2, b permits 2");
    assert_eq!(client.waiters("k"), 1);
    let again = client.ask("RLOCK.ACQUIRE k a 1000 LIMIT 4 PERMITS 2 ONCE");
    assert_eq!(again, Value::Int(token));
    client.give_back("k", "a", 2);
    waiter.token();
    assert_eq!(client.permits("k"), "b=2 c=3 mode=permits 4 5 5");
}

#[test]
fn a_key_that_is_evicted_is_announced_for_each_owner() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("CONFIG SET maxmemory-policy volatile-ttl");
    client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
    client.take_permits("k", "b", "LIMIT 4 PERMITS 2");
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 4 PERMITS 3");
    let mut events = crate::support::Listener::keyspace(&server, 0);
    client.ok("CONFIG SET maxmemory 1");
    client.ask("PING");
    client.ok("CONFIG SET maxmemory-policy noeviction");
    waiter.token();
    client.ok("CONFIG SET maxmemory 0");
    let events = events.events().into_iter().map(|(event, _)| event);
    let ours: Vec<String> = events.filter(|event| event.starts_with("rlock.")).collect();
    let expected = ["rlock.evicted", "rlock.evicted", "rlock.acquired"];
    assert_eq!(ours[..3], expected);
    server.alive();
}

#[test]
fn a_transaction_that_takes_it_over_leaves_no_other_holder() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2 PERMITS 2");
    let begin = now_ms();
    client.succeed(&["MULTI", "DEL k", "RLOCK.ACQUIRE k x 100000 LIMIT 3", "EXEC"]);
    assert_eq!(client.permits("k"), "mode=permits 3 3 1 x=1");
    assert!(client.permits_end("k", "x") >= begin + 100_000);
    client.take_permits("k", "y", "LIMIT 3 PERMITS 2");
    assert_eq!(client.code("RLOCK.RELEASE k a PERMITS"), "NOTHELD");
}
