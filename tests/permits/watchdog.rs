//! WATCHDOG binds permits to a connection, each by the request that took it.

use redis::Value;

use crate::support::{
    both_ways, eventually, now_ms, pass, Ask, Bound, Listener, Server, Session, Way, LONG,
};

#[test]
fn a_close_ends_exactly_what_its_connection_took_with_it() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    // Its own without WATCHDOG before and after, and another connection's.
    client.take_permits("k", "a", "LIMIT 9");
    let mut bound = Bound::with(&server, &format!("k a {LONG} LIMIT 9 PERMITS 2"));
    bound.client.take_permits("k", "a", "LIMIT 9");
    let mut other = Bound::with(&server, &format!("k a {LONG} LIMIT 9 PERMITS 3"));
    client.take_permits("k", "b", "LIMIT 9 PERMITS 2");
    assert_eq!(client.permits("k"), "a=7 b=2 mode=permits 9 9 9");
    assert_eq!(client.counter("rlock_watchdog_holds"), 5);
    let mut waiter = Way::Block.permits(&server, "k", "c", "LIMIT 9 PERMITS 2");
    let mut last = Way::Block.permits(&server, "k", "d", "LIMIT 9");
    events.events();
    bound.client.close();
    waiter.token();
    last.still_waits();
    assert_eq!(client.permits("k"), "a=5 b=2 c=2 mode=permits 9 9 9");
    assert_eq!(client.counter("rlock_watchdog_holds"), 3);
    assert_eq!(events.count("rlock.released", "k"), 1);
    other.client.in_step();
    other.client.close();
    last.token();
    client.permits_become("k", "a=2 b=2 c=2 d=1 mode=permits 9 9 7");
    assert_eq!(client.counter("rlock_watchdog_holds"), 0);
    assert_eq!(client.int("RLOCK.RELEASE k a PERMITS ALL"), 0);
}

#[test]
fn all_that_a_connection_took_by_several_requests_ends_with_it() {
    let server = Server::start();
    let mut client = server.raw();
    for tags in [["t1", "t2", "t3"], ["t", "u", "t2"]] {
        let mut session = Session::new(&server);
        for (tag, count) in tags.iter().zip([1, 2, 1]) {
            session.hold("k", "a", &format!("LIMIT 5 PERMITS {count} WATCHDOG"), tag);
        }
        client.take_permits("k", "b", "LIMIT 5");
        assert_eq!(client.permits("k"), "a=4 b=1 mode=permits 5 5 5");
        session.client.close();
        client.permits_become("k", "b=1 mode=permits 5 5 1");
        assert_eq!(client.give_back("k", "b", 1), 0);
    }
    // And with the last of it the lock.
    let mut session = Session::new(&server);
    session.hold("k", "a", "LIMIT 5 WATCHDOG", "t1");
    session.hold("k", "a", "LIMIT 5 WATCHDOG", "t2");
    session.client.close();
    client.goes_free("k");
    client.nothing_left("k");
}

#[test]
fn the_lease_is_renewed_while_the_connection_is_open() {
    let server = Server::start();
    let mut client = server.raw();
    let mut bound = Bound::with(&server, "k a 1000 LIMIT 3 PERMITS 2");
    client.int("RLOCK.ACQUIRE k b 1000 LIMIT 3");
    let ends = client.permits_end("k", "b");
    pass(ends + 1500);
    client.permits_become("k", "a=2 mode=permits 3 3 2");
    let held = client.only("k");
    assert_eq!(
        (held.token, held.watchdog),
        (Some(bound.token), Some(bound.id))
    );
    let first = client.permits_end("k", "a");
    eventually("it is renewed", || client.permits_end("k", "a") > first);
    assert!(client.deadline("k") >= client.permits_end("k", "a"));
    bound.client.in_step();
    assert_eq!(bound.client.give_back("k", "a", 1), 1);
    let left = client.permits_end("k", "a");
    eventually("so is the rest", || client.permits_end("k", "a") > left);
    assert_eq!(bound.client.give_back("k", "a", 1), 0);
    client.nothing_left("k");
    assert_eq!(client.counter("rlock_watchdog_holds"), 0);
    bound.client.in_step();
}

both_ways!(what_was_waited_for_is_bound_from_the_grant_on);
fn what_was_waited_for_is_bound_from_the_grant_on(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 4 PERMITS 4");
    let mut bound = by.with(
        &server,
        &format!("k b {LONG} LIMIT 4 PERMITS 3 BLOCK 0 WATCHDOG"),
    );
    let mut next = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 4");
    assert_eq!(client.counter("rlock_watchdog_holds"), 0);
    client.give_back("k", "a", 4);
    bound.token();
    assert_eq!(client.watchdog("k"), Some(bound.id));
    assert_eq!(client.counter("rlock_watchdog_holds"), 3);
    next.still_waits();
    bound.client.close();
    next.token();
    assert_eq!(client.permits("k"), "c=4 mode=permits 4 4 4");
}

#[test]
fn a_release_by_the_connection_ends_what_it_took_before_that_of_others() {
    let server = Server::start();
    let mut client = server.raw();
    let mut one = Bound::with(&server, &format!("k a {LONG} LIMIT 9 PERMITS 2"));
    let other = Bound::with(&server, &format!("k a {LONG} LIMIT 9 PERMITS 2"));
    assert_eq!(one.client.give_back("k", "a", 1), 3);
    other.client.close();
    client.permits_become("k", "a=1 mode=permits 9 9 1");
    assert_eq!(client.watchdog("k"), Some(one.id));
    // What nobody is bound to goes before what somebody is.
    client.take_permits("k", "a", "LIMIT 9 PERMITS 2");
    assert_eq!(server.raw().give_back("k", "a", 2), 1);
    assert_eq!(client.watchdog("k"), Some(one.id));
    one.client.close();
    client.goes_free("k");
}

#[test]
fn renew_binds_all_that_the_owner_has() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 9 PERMITS 3");
    client.take_permits("k", "b", "LIMIT 9");
    let bound = Bound::with(&server, &format!("k a {LONG} LIMIT 9"));
    let mut heir = server.raw();
    let id = heir.client_id();
    assert_eq!(
        heir.int(&format!("RLOCK.RENEW k a {LONG} PERMITS WATCHDOG")),
        1
    );
    assert_eq!(client.counter("rlock_watchdog_holds"), 4);
    bound.client.close();
    pass(now_ms() + 100);
    assert_eq!(client.permits("k"), "a=4 b=1 mode=permits 9 9 5");
    let held = client.info("k").holders;
    assert_eq!(held[0].watchdog, Some(id));
    heir.close();
    client.permits_become("k", "b=1 mode=permits 9 9 1");
}

#[test]
fn once_binds_what_is_there_and_adds_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
    let words = format!("k a {LONG} LIMIT 4 PERMITS 3 ONCE");
    let first = Bound::with(&server, &words);
    let second = Bound::with(&server, &words);
    assert_eq!([first.token, second.token], [token; 2]);
    assert_eq!(client.permits("k"), "a=3 mode=permits 4 4 3");
    assert_eq!(client.watchdog("k"), Some(second.id));
    first.client.close();
    pass(now_ms() + 100);
    assert_eq!(client.permits("k"), "a=3 mode=permits 4 4 3");
    second.client.close();
    client.goes_free("k");
}

#[test]
fn a_stall_longer_than_the_lease_is_outlived() {
    let server = Server::start();
    let mut client = server.raw();
    for others in [false, true] {
        if others {
            client.take_permits("k", "b", "LIMIT 3");
        }
        let mut held = Bound::with(&server, "k a 600 LIMIT 3 PERMITS 2");
        server.pause_process();
        pass(now_ms() + 1500);
        server.resume_process();
        let (held_by, hash) = match others {
            true => ("a permits 2, b permits 1", "a=2 b=1 mode=permits 3 3 3"),
            false => ("a permits 2", "a=2 mode=permits 3 3 2"),
        };
        for _ in 0..2 {
            client.goes_to("k", held_by);
            assert_eq!(client.permits("k"), hash);
            let token = client.known_token("k", "a", "permits");
            assert_eq!(token, Some(held.token));
            held.client.in_step();
            pass(now_ms() + 900);
        }
        assert_eq!(held.client.give_back("k", "a", 2), 0);
    }
}

/// Nobody can have come between: whoever is watched has them again, whatever the limit is by
/// then; whoever is not has lost them.
#[test]
fn all_that_are_watched_outlive_it_and_no_others() {
    let server = Server::start();
    let mut client = server.raw();
    for limit in [6, 2] {
        println!("{limit}");
        client.int("RLOCK.ACQUIRE k c 700 LIMIT 6");
        let mut one = Bound::with(&server, "k a 600 LIMIT 6 PERMITS 2");
        let mut other = Bound::with(&server, "k b 600 LIMIT 6 PERMITS 2");
        client.int(&format!("RLOCK.LIMIT k {limit}"));
        let mut events = Listener::keyspace(&server, 0);
        server.pause_process();
        pass(now_ms() + 1500);
        server.resume_process();
        client.goes_to("k", "a permits 2, b permits 2");
        assert_eq!(
            client.permits("k"),
            format!("a=2 b=2 mode=permits 6 {limit} 4")
        );
        assert_eq!(events.count("rlock.expired", "k"), 1);
        one.client.in_step();
        other.client.in_step();
        assert_eq!(client.int("RLOCK.FORCE k"), 1);
    }
}

#[test]
fn it_is_refused_where_there_is_no_connection() {
    let server = Server::start();
    let mut client = server.raw();
    let script = "return redis.call('RLOCK.ACQUIRE',KEYS[1],'a',9000,'LIMIT',2,'WATCHDOG')";
    let reply = client.ask(&["EVAL", script, "1", "k"]);
    assert!(matches!(reply, Value::ServerError(_)), "{reply:?}");
    client.nothing_left("k");
}
