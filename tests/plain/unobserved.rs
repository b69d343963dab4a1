//! What others do to a plain lock that is only held goes unheard: whoever comes to it looks.

use crate::support::{
    both_ways, code, eventually, now_ms, pair, pass, same_on_both, Ask, Bound, Listener, Server,
    Way,
};

/// Requests of others, and what `k` is after them: free, held by `z`, or no lock.
const WAYS: [(&[&str], &str); 9] = [
    (&["DEL k"], "free"),
    (&["UNLINK k"], "free"),
    (&["PEXPIREAT k 1"], "free"),
    (&["RENAME k elsewhere"], "free"),
    (&["MOVE k 1"], "free"),
    (&["HDEL k a"], "free"),
    (&["EVAL redis.call('DEL',KEYS[1]) 1 k"], "free"),
    (&["SET k v"], "none"),
    (
        &["MULTI", "DEL k", "HSET k z 1", "PEXPIRE k 100000", "EXEC"],
        "z",
    ),
];

#[test]
fn who_comes_next_finds_what_others_did() {
    let server = Server::start();
    let mut control = server.raw();
    for (way, then) in WAYS {
        for first in [
            "RLOCK.ACQUIRE k b 100000",
            "RLOCK.RELEASE k a",
            "RLOCK.RENEW k a 1000",
        ] {
            println!("{way:?} {first}");
            control.ok("FLUSHALL");
            let token = control.token("RLOCK.ACQUIRE k a 100000");
            control.succeed(way);
            let reply = control.ask(first);
            match (then, first.starts_with("RLOCK.ACQUIRE")) {
                ("none", _) => assert_eq!(code(&reply), "WRONGTYPE"),
                (_, false) => assert_eq!(code(&reply), "NOTHELD"),
                ("free", true) => {
                    assert!(crate::support::token(reply) > token);
                    assert_eq!(control.held_by("k"), "b exclusive 1");
                }
                (_, true) => {
                    assert_eq!(reply, redis::Value::Nil);
                    assert_eq!(control.held_by("k"), "z exclusive 1");
                }
            }
            if then != "none" {
                assert!(!control.held_by("k").contains("a "));
            }
        }
    }
    server.alive();
}

both_ways!(a_lock_that_was_there_before_is_observed_for_who_waits);
fn a_lock_that_was_there_before_is_observed_for_who_waits(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for (way, _) in WAYS.into_iter().filter(|(_, then)| *then == "free") {
        println!("{way:?}");
        control.ok("FLUSHALL");
        control.token("RLOCK.ACQUIRE k a 100000");
        control.token("RLOCK.ACQUIRE other c 100000");
        // Unheard, for nobody waits there.
        control.ask("DEL other");
        let mut waiter = by.wait(&server, "k", "b");
        control.succeed(way);
        waiter.token();
        assert_eq!(control.held_by("k"), "b exclusive 1");
        control.token("RLOCK.ACQUIRE other d 100000");
        // Held, and nobody waits any more.
        control.ask("DEL k");
        control.token("RLOCK.ACQUIRE k e 100000");
    }
    server.alive();
}

#[test]
fn a_hold_that_is_bound_later_is_lost_when_its_key_goes() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    control.token("RLOCK.ACQUIRE other a 100000");
    let mut held = Bound::by(&server, "RLOCK.ACQUIRE k a 100000 ONCE WATCHDOG");
    control.ask("DEL other");
    held.client.in_step();
    control.ask("DEL k");
    assert!(held.client.is_closed());
    control.token("RLOCK.ACQUIRE k b 100000");
}

#[test]
fn what_is_gone_is_forgotten_when_its_lease_would_have_ended() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 200");
    control.ask("DEL k");
    eventually("it is forgotten", || control.counter("rlock_held") == 0);

    // A key that ends never any more is heard of, once that is known.
    control.token("RLOCK.ACQUIRE k a 200");
    control.ask("PERSIST k");
    pass(now_ms() + 300);
    assert_eq!(control.held_by("k"), "a exclusive 1");
    control.ask("DEL k");
    eventually("so is that", || control.counter("rlock_held") == 0);

    // A later end is found out when the earlier one has come.
    control.token("RLOCK.ACQUIRE k a 200");
    control.ask("PEXPIRE k 100000");
    pass(now_ms() + 300);
    assert_eq!(control.held_by("k"), "a exclusive 1");
    assert_eq!(control.ask("RLOCK.ACQUIRE k b 1000"), redis::Value::Nil);
}

/// Hashes that an application makes, also such as read/write locks look like.
const OTHERS: [&str; 5] = [
    "apples 2",
    "mode read",
    "mode write",
    "mode read x 1",
    "mode read a 1",
];

#[test]
fn what_an_application_puts_in_its_place_is_its_own() {
    let server = Server::start();
    let mut control = server.raw();
    for (gone, hash) in OTHERS
        .map(|hash| ["DEL k", "RENAME k elsewhere"].map(|gone| (gone, hash)))
        .concat()
    {
        for request in [
            "RLOCK.FORCE k",
            "RLOCK.INFO k",
            "RLOCK.ACQUIRE k b 1000",
            "RLOCK.ACQUIRE k b 1000 BLOCK 0",
            "RLOCK.ACQUIRE k apples 1000",
            "RLOCK.MACQUIRE 2 other k b 1000",
            "RLOCK.RELEASE k a",
            "RLOCK.RELEASE k apples",
            "RLOCK.RENEW k apples 300",
        ] {
            let why = format!("{request} after {gone}, HSET k {hash}");
            control.ok("FLUSHALL");
            control.token("RLOCK.ACQUIRE k a 600000");
            control.succeed(&[gone, &format!("HSET k {hash}")]);
            let before = control.ask("HGETALL k");
            assert_eq!(control.code(request), "WRONGTYPE", "{why}");
            assert_eq!(control.ask("HGETALL k"), before, "{why}");
            assert_eq!(control.int("PTTL k"), -1, "{why}");
        }
    }
}

#[test]
fn it_stays_when_the_lease_would_have_ended() {
    let server = Server::start();
    let mut control = server.raw();
    for hash in OTHERS {
        control.ok("FLUSHALL");
        control.token("RLOCK.ACQUIRE k a 100");
        control.succeed(&["DEL k", &format!("HSET k {hash}")]);
        let before = control.ask("HGETALL k");
        eventually("it is forgotten", || control.counter("rlock_held") == 0);
        assert_eq!(control.ask("HGETALL k"), before, "{hash}");
    }
}

#[test]
fn who_looks_finds_out_that_a_lock_is_gone() {
    let server = Server::start();
    let mut control = server.raw();
    for look in ["RLOCK.INFO k", "RLOCK.LIST", "RLOCK.LIST HELD-LONGER 0"] {
        control.token("RLOCK.ACQUIRE k a 600000");
        let since = now_ms();
        eventually("it is held for a while", || now_ms() > since + 2);
        control.int("DEL k");
        assert_eq!(control.counter("rlock_held"), 1);
        control.ask(look);
        eventually(look, || control.counter("rlock_held") == 0);
    }
}

#[test]
fn a_nested_hold_keeps_its_token_whatever_others_do_to_its_lease() {
    let server = Server::start();
    let mut control = server.raw();
    let token = control.token("RLOCK.ACQUIRE k a 100000");
    control.token("RLOCK.ACQUIRE k a 100000");
    let again = ["RLOCK.ACQUIRE k a 1 ONCE", "RLOCK.ACQUIRE k a 1"];
    for others in ["PEXPIRE k 200000", "PEXPIRE k 50000", "HINCRBY k a 1"] {
        control.int(others);
        for request in again {
            assert_eq!(control.token(request), token, "{request} after {others}");
        }
    }
    control.int("PEXPIRE k 90000");
    let only = format!("RLOCK.RELEASE k a ALL IFTOKEN {token}");
    assert_eq!(control.int(&only), 0);
    assert_eq!(control.int("EXISTS k"), 0);
}

#[test]
fn a_hold_that_may_be_another_has_no_token_from_before() {
    let server = Server::start();
    let mut control = server.raw();
    let token = control.token("RLOCK.ACQUIRE k a 100000");
    control.succeed(&["DEL k", "HSET k a 1", "PEXPIRE k 50000"]);
    let only = format!("RLOCK.RELEASE k a IFTOKEN {token}");
    assert_eq!(control.int(&only), 0);
    assert_eq!(control.held_by("k"), "a exclusive 1");
    assert!(control.token("RLOCK.ACQUIRE k a 1000") > token);
    assert_eq!(control.held_by("k"), "a exclusive 2");
}

#[test]
fn all_that_is_held_is_observed_for_who_listens() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    control.ask("DEL k");
    assert_eq!(control.counter("rlock_held"), 1);
    control.ask("RLOCK.ACQUIRE k a 100000");
    control.ask("CONFIG SET notify-keyspace-events KEA");
    control.ask("DEL k");
    eventually("it is heard", || control.counter("rlock_held") == 0);
    control.ask("RLOCK.ACQUIRE k a 300");
    let mut listener = Listener::keyspace(&server, 0);
    control.ask("PEXPIRE k 50");
    eventually("its end is told", || {
        listener.count("rlock.expired", "k") == 1
    });
}

#[test]
fn a_replica_has_what_is_found() {
    let (server, replica) = pair(&[]);
    let (mut control, mut copy) = (server.raw(), replica.raw());
    for (way, _) in WAYS {
        control.ok("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        control.ask("RLOCK.ACQUIRE other a 100000");
        control.succeed(way);
        control.ask("RLOCK.ACQUIRE k b 100000");
        control.ask("RLOCK.RELEASE other a");
        same_on_both(&mut control, &mut copy, way[0]);
    }
    // What it never heard of either it looks at when it is the master.
    control.ok("FLUSHALL");
    control.ask("RLOCK.ACQUIRE k a 100000");
    control.ask("DEL k");
    control.ask("RLOCK.ACQUIRE kept a 100000");
    same_on_both(&mut control, &mut copy, "the last");
    copy.ask("REPLICAOF NO ONE");
    copy.token("RLOCK.ACQUIRE k b 100000");
    assert_eq!(copy.ask("RLOCK.ACQUIRE kept b 1000"), redis::Value::Nil);
    copy.ask("DEL kept");
    copy.token("RLOCK.ACQUIRE kept b 1000");
}
