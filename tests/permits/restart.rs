//! A restart in the middle: who holds permits, the limit and what is out are in the hash.

use crate::support::{both_ways, int, now_ms, pass, Ask, RawClient, Server, Way, AOF, LONG};

/// Written on a graceful end.
const RDB: [&str; 2] = ["--save", "3600 1"];

const KINDS: [&[&str]; 2] = [&RDB, &AOF];

both_ways!(holders_the_limit_and_what_is_out_are_there);
fn holders_the_limit_and_what_is_out_are_there(by: Way) {
    for options in KINDS {
        let mut server = Server::start_with(options);
        let mut client = server.raw();
        let token = client.take_permits("k", "a", "LIMIT 4 PERMITS 2");
        client.take_permits("k", "b", "LIMIT 4");
        client.int("RLOCK.LIMIT k 5");
        let before = client.everything();
        server.restart();
        let mut client = server.raw();
        assert_eq!(client.everything(), before);
        assert!(client.refused(&format!("RLOCK.ACQUIRE k c {LONG} LIMIT 4 PERMITS 3")));
        crate::support::eventually("another limit is refused once they are known", || {
            client.ask(&format!("RLOCK.ACQUIRE k c {LONG} LIMIT 5")) != redis::Value::Nil
        });
        assert_eq!(
            client.code(&format!("RLOCK.ACQUIRE k c {LONG} LIMIT 5")),
            "WRONGLIMIT"
        );
        let mut waiter = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 3");
        assert_eq!(client.held_by("k"), "a permits 2, b permits 1");
        assert_eq!(client.pool("k").limit, 5);
        // Each is its owner's still.
        assert_eq!(client.int("RLOCK.RENEW k b 200000 PERMITS"), 1);
        assert!(client.token(&format!("RLOCK.ACQUIRE k a {LONG} LIMIT 4 PERMITS 2 ONCE")) > token);
        waiter.still_waits();
        assert_eq!(client.give_back("k", "a", 2), 0);
        waiter.token();
        assert_eq!(client.permits("k"), "b=1 c=3 mode=permits 4 5 4");
    }
}

/// `a` has 2 of 4 that end while the server is down, `b` 2 for long.
fn ended_while_down(options: &[&str]) -> (Server, RawClient) {
    let mut server = Server::start_with(options);
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 4 PERMITS 2");
    client.int("RLOCK.ACQUIRE k a 1500 LIMIT 4 PERMITS 2");
    let ends = client.permits_end("k", "a");
    server.stop_gracefully();
    pass(ends + 10);
    server.start_again();
    let client = server.raw();
    (server, client)
}

#[test]
fn what_ran_out_meanwhile_comes_back() {
    for options in KINDS {
        let (server, mut client) = ended_while_down(options);
        // Nobody has asked yet.
        client.permits_become("k", "b=2 mode=permits 4 4 2");
        assert_eq!(client.counter("rlock_expired"), 1);
        client.take_permits("k", "c", "LIMIT 4 PERMITS 2");
        assert_eq!(client.code("RLOCK.RELEASE k a PERMITS"), "NOTHELD");
        server.alive();
    }
}

#[test]
fn a_try_is_refused_at_worst_until_it_has_come_back() {
    for options in KINDS {
        let (_server, mut client) = ended_while_down(options);
        let line = format!("RLOCK.ACQUIRE k c {LONG} LIMIT 4 PERMITS 2");
        crate::support::eventually("it is to be had", || !client.refused(&line));
        assert_eq!(client.permits("k"), "b=2 c=2 mode=permits 4 4 4");
    }
}

both_ways!(a_waiter_waits_and_gets_it);
fn a_waiter_waits_and_gets_it(by: Way) {
    for options in KINDS {
        let (server, mut client) = ended_while_down(options);
        let mut two = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 2");
        let mut next = by.permits(&server, "k", "d", "LIMIT 4");
        two.token();
        next.still_waits();
        assert_eq!(client.permits("k"), "b=2 c=2 mode=permits 4 4 4");
        client.give_back("k", "b", 1);
        next.token();
    }
}

/// Without a request of anybody's, and with the server's own expiry off.
#[test]
fn leases_that_end_later_end_in_time() {
    for options in KINDS {
        let mut server = Server::start_with(options);
        let mut client = server.raw();
        client.take_permits("k", "b", "LIMIT 4 PERMITS 2");
        client.int("RLOCK.ACQUIRE k a 5000 LIMIT 4 PERMITS 2");
        let ends = client.permits_end("k", "a");
        server.restart();
        let mut client = server.raw();
        client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
        assert!(now_ms() < ends, "this machine is too slow for the test");
        assert_eq!(client.permits("k"), "a=2 b=2 mode=permits 4 4 4");
        client.permits_become("k", "b=2 mode=permits 4 4 2");
        let late = now_ms() - ends;
        assert!((0..3000).contains(&late), "{late} ms late");
    }
}

#[test]
fn all_that_ran_out_meanwhile_leave_nothing() {
    for options in KINDS {
        let mut server = Server::start_with(options);
        let mut client = server.raw();
        for (owner, lease) in [("a", 1000), ("b", 1500)] {
            client.int(&format!("RLOCK.ACQUIRE k {owner} {lease} LIMIT 2"));
        }
        let ends = client.ends("k");
        server.stop_gracefully();
        pass(ends + 10);
        server.start_again();
        let mut client = server.raw();
        client.take_permits("k", "c", "LIMIT 9 PERMITS 9");
        assert_eq!(client.permits("k"), "c=9 mode=permits 9 9 9");
    }
}

#[test]
fn nobody_is_granted_beside_those_who_are_not_read_yet() {
    let mut server = Server::start_with(&RDB);
    let mut client = server.raw();
    let all: Vec<String> = (0..3000)
        .map(|n| format!("RLOCK.ACQUIRE k o{n} 600000 LIMIT 3000"))
        .collect();
    client.succeed(&all);
    server.restart();
    let mut client = server.raw();
    for n in 0..50 {
        assert!(client.refused("RLOCK.ACQUIRE k new 1000 LIMIT 3000"));
        assert_eq!(client.give_back("k", &format!("o{n}"), 1), 0);
        let token = client.ask("RLOCK.ACQUIRE k new 1000 LIMIT 3000");
        assert!(int(token) > 0);
        assert_eq!(client.give_back("k", "new", 1), 0);
        client.take_permits("k", &format!("o{n}"), "LIMIT 3000");
    }
    assert_eq!(client.text("HGET k mode"), "permits 3000 3000 3000");
}
