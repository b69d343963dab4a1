//! The lease of one owner ends alone: it is told of once, and lets in as many as fit.

use crate::support::{both_ways, eventually, int, now_ms, Ask, Listener, Server, Way, LONG};

/// "Within some ms", on a machine that others use too.
const SOON_MS: i64 = 2000;

both_ways!(it_lets_in_exactly_as_many_as_fit_in_order);
fn it_lets_in_exactly_as_many_as_fit_in_order(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 5 PERMITS 2");
    client.int("RLOCK.ACQUIRE k a 1000 LIMIT 5 PERMITS 3");
    let ends = client.permits_end("k", "a");
    let mut events = Listener::keyspace(&server, 0);
    let mut first = by.permits(&server, "k", "w1", "LIMIT 5");
    let mut second = by.permits(&server, "k", "w2", "LIMIT 5 PERMITS 2");
    let mut third = by.permits(&server, "k", "w3", "LIMIT 5");
    let tokens = [first.token(), second.token()];
    let told = now_ms();
    assert!(tokens[0] < tokens[1], "first come, first served");
    assert!((ends..ends + SOON_MS).contains(&told), "{}", told - ends);
    third.still_waits();
    let expected = "b=2 mode=permits 5 5 5 w1=1 w2=2";
    assert_eq!(client.permits("k"), expected);
    assert_eq!(events.count("rlock.expired", "k"), 1);
    for owner in ["w1", "w2"] {
        assert!(client.permits_end("k", owner) >= ends + LONG);
    }
    assert_eq!(client.code("RLOCK.RELEASE k a PERMITS"), "NOTHELD");
    client.give_back("k", "w1", 1);
    third.token();
}

#[test]
fn it_is_announced_once_for_each_owner_also_where_nobody_waits() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    for (owner, lease) in [("a", 300), ("b", 500), ("c", 700)] {
        client.int(&format!(
            "RLOCK.ACQUIRE k {owner} {lease} LIMIT 6 PERMITS 2"
        ));
    }
    let ends = client.permits_end("k", "c");
    client.goes_free("k");
    let free = now_ms();
    assert!((ends..ends + SOON_MS).contains(&free), "{}", free - ends);
    eventually("each is told of", || client.counter("rlock_expired") >= 3);
    assert_eq!(events.count("rlock.expired", "k"), 3);
    client.nothing_left("k");
}

/// The server itself ends the key at that moment, or rlock ends them one by one.
#[test]
fn many_that_end_in_one_moment_are_each_announced() {
    for active in [0, 1] {
        let server = Server::start();
        let mut client = server.raw();
        client.ok(&format!("DEBUG SET-ACTIVE-EXPIRE {active}"));
        let mut events = Listener::keyspace(&server, 0);
        let all: Vec<String> = (0..40)
            .map(|n| format!("RLOCK.ACQUIRE k o{n} 1000 LIMIT 40"))
            .collect();
        client.succeed(&all);
        client.goes_free("k");
        eventually("each is told of", || client.counter("rlock_expired") >= 40);
        assert_eq!(events.count("rlock.expired", "k"), 40);
        client.nothing_left("k");
    }
}

#[test]
fn what_is_over_is_free_for_a_try_at_once() {
    let server = Server::start();
    let mut client = server.raw();
    // In one command, behind the end of the lease: before any timer.
    let script = "redis.call('RLOCK.ACQUIRE',KEYS[1],'b',9000,'LIMIT',2)
                  redis.call('RLOCK.ACQUIRE',KEYS[1],'a',30,'LIMIT',2)";
    client.ask(&["EVAL", script, "1", "k"]);
    let mut granted = 0;
    eventually("it can be had", || {
        let reply = client.ask(&format!("RLOCK.ACQUIRE k c {LONG} LIMIT 2"));
        if reply != redis::Value::Nil {
            granted = int(reply);
        }
        granted > 0
    });
    assert_eq!(client.permits("k"), "b=1 c=1 mode=permits 2 2 2");
    assert_eq!(client.counter("rlock_expired"), 1);
}

#[test]
fn an_owner_that_says_so_in_time_stays() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 2");
    client.int("RLOCK.ACQUIRE k a 5000 LIMIT 2");
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 2");
    let until = now_ms() + 6000;
    while now_ms() < until {
        assert_eq!(client.int("RLOCK.RENEW k a 5000 PERMITS"), 1);
        waiter.still_waits();
    }
    assert_eq!(client.counter("rlock_expired"), 0);
    client.give_back("k", "a", 1);
    waiter.token();
}
