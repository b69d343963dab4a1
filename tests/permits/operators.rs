//! RLOCK.LIMIT: how many permits there are is changed while they are held; what requests say
//! stays.

use crate::support::{both_ways, error, eventually, Ask, Permits, Server, Way, LONG};

both_ways!(more_of_them_let_waiters_in_at_once_and_in_order);
fn more_of_them_let_waiters_in_at_once_and_in_order(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2 PERMITS 2");
    let mut waiters: Vec<_> = [("p", 1), ("q", 2), ("r", 1), ("s", 1)]
        .iter()
        .map(|(owner, n)| by.permits(&server, "k", owner, &format!("LIMIT 2 PERMITS {n}")))
        .collect();
    let replies = client.succeed(&["RLOCK.LIMIT k 5", "HGET k mode"]);
    assert_eq!(replies[0], redis::Value::Int(2), "the one that was");
    assert_eq!(replies[1], crate::support::bulk("permits 2 5 5"));
    let tokens: Vec<i64> = waiters[..2]
        .iter_mut()
        .map(|waiter| waiter.token())
        .collect();
    assert!(tokens.is_sorted());
    waiters[2].still_waits();
    assert_eq!(client.permits("k"), "a=2 mode=permits 2 5 5 p=1 q=2");
    assert_eq!(client.int("RLOCK.LIMIT k 7"), 5);
    waiters[2].token();
    waiters[3].token();
    assert!(client.refused("RLOCK.ACQUIRE k z 1000 LIMIT 2"));
}

both_ways!(fewer_take_nothing_and_grant_nothing_before_enough_came_back);
fn fewer_take_nothing_and_grant_nothing_before_enough_came_back(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["a", "b", "c", "d"] {
        client.take_permits("k", owner, "LIMIT 4");
    }
    let ends = client.permits_end("k", "d");
    assert_eq!(client.int("RLOCK.LIMIT k 3"), 4);
    let held = "a=1 b=1 c=1 d=1 mode=permits 4 3 4";
    assert_eq!(client.permits("k"), held);
    assert_eq!(client.permits_end("k", "d"), ends);
    let expected = Permits {
        limit: 3,
        asked: 4,
        available: 0,
    };
    assert_eq!(client.pool("k"), expected);
    let mut one = by.permits(&server, "k", "w", "LIMIT 4");
    let mut two = by.permits(&server, "k", "v", "LIMIT 4 PERMITS 2");
    client.give_back("k", "a", 1);
    one.still_waits();
    assert!(client.refused("RLOCK.ACQUIRE k z 1000 LIMIT 4"));
    client.give_back("k", "b", 1);
    one.token();
    for owner in ["c", "d"] {
        two.still_waits();
        client.give_back("k", owner, 1);
    }
    two.token();
    assert_eq!(client.permits("k"), "mode=permits 4 3 3 v=2 w=1");
}

both_ways!(who_wants_more_than_there_are_now_gets_the_error);
fn who_wants_more_than_there_are_now_gets_the_error(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 5 PERMITS 4");
    client.take_permits("k", "b", "LIMIT 5");
    let mut waiters: Vec<_> = [("p", 4), ("q", 2), ("r", 5), ("s", 1)]
        .iter()
        .map(|(owner, n)| by.permits(&server, "k", owner, &format!("LIMIT 5 PERMITS {n}")))
        .collect();
    assert_eq!(client.int("RLOCK.LIMIT k 3"), 5);
    let expected = "WRONGLIMIT 'k' has a limit of 3 for now: ask for no more permits";
    for at in [0, 2] {
        assert_eq!(error(waiters[at].end()), expected);
        waiters[at].client.in_step();
    }
    eventually("they are gone", || client.waiters("k") == 2);
    for words in ["", "ONCE", "BLOCK 0"] {
        let line = format!("RLOCK.ACQUIRE k x {LONG} LIMIT 5 PERMITS 4 {words}");
        assert_eq!(client.error(&line), expected);
    }
    client.give_back("k", "a", 3);
    waiters[1].still_waits();
    client.give_back("k", "a", 1);
    waiters[1].token();
    waiters[3].still_waits();
    assert_eq!(client.permits("k"), "b=1 mode=permits 5 3 3 q=2");
}

both_ways!(it_lasts_until_nobody_holds_any);
fn it_lasts_until_nobody_holds_any(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2");
    client.int("RLOCK.LIMIT k 3");
    for owner in ["b", "c"] {
        client.take_permits("k", owner, "LIMIT 2");
    }
    // Requests go on saying theirs, and nothing else.
    let expected = "WRONGLIMIT 'k' is held with limit 2: ask with that one, or use another name";
    assert_eq!(client.error("RLOCK.ACQUIRE k d 1000 LIMIT 3"), expected);
    let mut next = by.permits(&server, "k", "d", "LIMIT 2");
    client.give_back("k", "a", 1);
    next.token();
    assert_eq!(client.permits("k"), "b=1 c=1 d=1 mode=permits 2 3 3");
    for owner in ["b", "c", "d"] {
        client.give_back("k", owner, 1);
    }
    assert_eq!(client.code("RLOCK.LIMIT k 9"), "NOTHELD");
    client.take_permits("k", "a", "LIMIT 2");
    assert_eq!(client.permits("k"), "a=1 mode=permits 2 2 1");

    // Also where the next waits already.
    client.int("RLOCK.LIMIT k 1");
    let mut next = by.permits(&server, "k", "b", "LIMIT 2");
    let mut last = by.permits(&server, "k", "c", "LIMIT 2");
    client.give_back("k", "a", 1);
    next.token();
    last.token();
    assert_eq!(client.permits("k"), "b=1 c=1 mode=permits 2 2 2");
}

both_ways!(force_frees_all_of_it_and_the_limit_is_that_of_the_next);
fn force_frees_all_of_it_and_the_limit_is_that_of_the_next(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 4 PERMITS 3");
    client.take_permits("k", "b", "LIMIT 4");
    client.int("RLOCK.LIMIT k 1");
    let mut one = by.permits(&server, "k", "c", "LIMIT 4");
    let mut two = by.permits(&server, "k", "d", "LIMIT 4");
    let replies = client.succeed(&["RLOCK.FORCE k", "HGET k mode"]);
    assert_eq!(replies[0], redis::Value::Int(1));
    assert_eq!(replies[1], crate::support::bulk("permits 4 4 2"));
    one.token();
    two.token();
    assert_eq!(client.permits("k"), "c=1 d=1 mode=permits 4 4 2");
    for owner in ["a", "b"] {
        assert_eq!(
            client.code(&format!("RLOCK.RELEASE k {owner} PERMITS")),
            "NOTHELD"
        );
    }
}

#[test]
fn the_same_limit_changes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2");
    let before = (client.state(b"k"), client.changes());
    assert_eq!(client.int("RLOCK.LIMIT k 2"), 2);
    assert_eq!((client.state(b"k"), client.changes()), before);
    client.ok("SET text v");
    assert_eq!(client.code("RLOCK.LIMIT text 2"), "WRONGTYPE");
    for (mode, key) in [("", "plain"), ("READ", "read")] {
        client.token(&format!("RLOCK.ACQUIRE {key} a {LONG} {mode}"));
        assert_eq!(client.code(&format!("RLOCK.LIMIT {key} 2")), "WRONGMODE");
    }
}
