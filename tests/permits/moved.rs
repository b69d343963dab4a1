//! Permits whose key goes by another name, or is copied: leases and limits go with it.

use crate::support::{both_ways, now_ms, Ask, Bound, RawClient, Server, Way, LONG};

/// `a` has 2 of 4, which end in a while, `b` one for long; the limit is 5.
fn held(server: &Server) -> RawClient {
    let mut client = server.raw();
    client.succeed(&[
        "RLOCK.ACQUIRE k a 2500 LIMIT 4 PERMITS 2".to_owned(),
        format!("RLOCK.ACQUIRE k b {LONG} LIMIT 4"),
        "RLOCK.LIMIT k 5".to_owned(),
    ]);
    client
}

/// The ways, and where the hash is then.
const WAYS: [(&str, &str, &str); 3] = [
    ("RENAME k l", "SELECT 0", "l"),
    ("MOVE k 3", "SELECT 3", "k"),
    ("SWAPDB 0 3", "SELECT 3", "k"),
];

#[test]
fn it_is_the_same_lock_under_its_other_name() {
    for (way, select, name) in WAYS {
        println!("{way}");
        let server = Server::start();
        let mut client = held(&server);
        let before = (client.hash("k"), client.deadline("k"));
        let token = client.known_token("k", "b", "permits");
        let ends = client.permits_end("k", "a");
        client.succeed(&[way, select]);
        assert_eq!((client.hash(name), client.deadline(name)), before);
        assert_eq!(client.held_by(name), "a permits 2, b permits 1");
        assert_eq!(client.known_token(name, "b", "permits"), token);
        assert!(client.refused(&format!("RLOCK.ACQUIRE {name} x 1000 LIMIT 4 PERMITS 3")));
        client.take_permits(name, "c", "LIMIT 4 PERMITS 2");
        // Its leases end there, in time.
        let mut waiter = server.raw();
        waiter.ok(select);
        let line = format!("RLOCK.ACQUIRE {name} d {LONG} LIMIT 4 PERMITS 2 BLOCK 0");
        let mut waiter = Way::Block.on(waiter, &line);
        assert!(now_ms() < ends, "this machine is too slow for the test");
        waiter.token();
        assert!(now_ms() >= ends);
        assert_eq!(client.permits(name), "b=1 c=2 d=2 mode=permits 4 5 5");
        assert_eq!(client.counter("rlock_expired"), 1);
        for (owner, count) in [("b", 1), ("c", 2), ("d", 2)] {
            assert_eq!(client.give_back(name, owner, count), 0);
        }
        client.is_free(name);
    }
}

/// All of them hold on, and each can give back what it has.
#[test]
fn beyond_256_owners_the_tokens_are_not_known_under_its_other_name() {
    for (owners, known) in [(256, true), (257, false)] {
        let server = Server::start();
        let mut client = server.raw();
        for n in 0..owners {
            client.take_permits("k", &format!("o{n}"), "LIMIT 1000");
        }
        let token = client.known_token("k", "o7", "permits");
        assert!(token.is_some());
        client.ok("RENAME k l");
        assert!(client.refused(&format!(
            "RLOCK.ACQUIRE l x 1000 LIMIT 1000 PERMITS {}",
            1001 - owners
        )));
        let after = client.known_token("l", "o7", "permits");
        assert_eq!(after, token.filter(|_| known), "{owners} owners");
        for n in 0..owners {
            assert_eq!(client.give_back("l", &format!("o{n}"), 1), 0);
        }
        client.is_free("l");
    }
}

both_ways!(the_queue_stays_where_its_clients_asked);
fn the_queue_stays_where_its_clients_asked(by: Way) {
    for (way, select, name) in WAYS {
        println!("{way}");
        let server = Server::start();
        let mut client = held(&server);
        let mut here = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 3");
        client.succeed(&[way]);
        here.token();
        assert_eq!(client.permits("k"), "c=3 mode=permits 4 4 3");
        client.ok(select);
        client.permits_become(name, "b=1 mode=permits 4 5 1");
    }
}

#[test]
fn who_waits_under_the_other_name_sees_it_held() {
    let server = Server::start();
    let mut client = held(&server);
    client.take("l", "x");
    let mut waiter = Way::Block.permits(&server, "l", "c", "LIMIT 4 PERMITS 3");
    client.ok("RENAME k l");
    waiter.still_waits();
    assert_eq!(client.waiters("l"), 1);
    assert_eq!(client.give_back("l", "a", 1), 1);
    waiter.token();
    assert_eq!(client.permits("l"), "a=1 b=1 c=3 mode=permits 4 5 5");
}

#[test]
fn a_watchdog_does_not_follow() {
    for (way, select, name) in WAYS {
        let server = Server::start();
        let mut client = server.raw();
        let mut bound = Bound::with(&server, &format!("k a {LONG} LIMIT 4 PERMITS 2"));
        client.succeed(&[way, select]);
        assert!(bound.client.is_closed(), "{way}");
        assert_eq!(client.permits(name), "a=2 mode=permits 4 4 2", "{way}");
        assert_eq!(client.watchdog(name), None);
        assert_eq!(client.counter("rlock_watchdog_holds"), 0);
    }
}

/// Two hashes, and each is a lock of its own from then on.
#[test]
fn a_copy_is_another_lock_with_the_same_holders() {
    let server = Server::start();
    let mut client = held(&server);
    assert_eq!(client.int("COPY k l"), 1);
    assert_eq!(client.held_by("l"), "a permits 2, b permits 1");
    assert_eq!(client.give_back("k", "b", 1), 0);
    let ends = client.permits_end("l", "a");
    client.take_permits("l", "c", "LIMIT 4 PERMITS 2");
    let mut waiter = Way::Block.permits(&server, "l", "d", "LIMIT 4");
    waiter.token();
    assert!(now_ms() >= ends);
    assert_eq!(client.permits("l"), "b=1 c=2 d=1 mode=permits 4 5 4");
    client.goes_free("k");
}
