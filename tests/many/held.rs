//! Waiting for many keys of which the owner holds one already, loses one, or comes to
//! hold one in another way.

use crate::support::{both_ways, code, eventually, Ask, RawClient, Server, Way, LONG};

both_ways!(a_key_that_it_holds_already_is_not_waited_for);
fn a_key_that_it_holds_already_is_not_waited_for(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("x", "alice");
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "alice");
    let mut behind = by.wait(&server, "x", "c");
    client.int("RLOCK.RELEASE y bob");
    many.token();
    assert_eq!(client.hash("x"), "alice=2");
    assert_eq!(client.hash("y"), "alice=1");
    client.int("RLOCK.MRELEASE 2 x y alice");
    client.int("RLOCK.RELEASE x alice");
    behind.token();
}

both_ways!(a_key_that_it_loses_counts_from_its_place_of_arrival);
fn a_key_that_it_loses_counts_from_its_place_of_arrival(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let losing = [
        "RLOCK.RELEASE x alice",
        "RLOCK.FORCE x",
        "DEL x",
        "PEXPIRE x 30",
    ];
    for lose in losing {
        // Those who came later stand behind it.
        client.ok("FLUSHALL");
        client.take("x", "alice");
        client.take("y", "bob");
        let mut many = by.many(&server, "x y", "alice");
        let mut later = by.wait(&server, "x", "c");
        client.int(lose);
        eventually("it is lost", || client.mode("x") == "reserved");
        later.still_waits();
        client.int("RLOCK.RELEASE y bob");
        many.token();
        client.int("RLOCK.MRELEASE 2 x y alice");
        later.token();

        // Those who came before it are before it.
        client.ok("FLUSHALL");
        client.take("x", "alice");
        client.take("y", "bob");
        let mut before = by.wait(&server, "x", "c");
        let mut many = by.many(&server, "x y", "alice");
        client.int(lose);
        before.token();
        client.int("RLOCK.RELEASE y bob");
        client.is_reserved("y");
        many.still_waits();
        client.int("RLOCK.RELEASE x c");
        many.token();
        assert_eq!(client.hash("x"), "alice=1", "{lose}");
    }
}

both_ways!(it_is_judged_anew_when_its_owner_comes_to_hold_one);
fn it_is_judged_anew_when_its_owner_comes_to_hold_one(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let setup = |client: &mut RawClient, words: &str| {
        client.ok("FLUSHALL");
        client.take("x", "h");
        client.take("y", "h");
        let single = by.with(&server, &format!("x alice {LONG} BLOCK 0 {words}"));
        let once = by.many_with(&server, "x y", "alice", "ONCE BLOCK 0");
        // Behind it: without ONCE it takes no place.
        let many = by.many(&server, "x y", "alice");
        (single, once, many)
    };
    // Granted alone: both go on waiting for the rest, and the one that says ONCE adds no
    // hold to what is held.
    let (mut single, mut once, mut many) = setup(&mut client, "");
    client.int("RLOCK.RELEASE x h");
    let first = single.token();
    once.still_waits();
    many.still_waits();
    client.int("RLOCK.RELEASE y h");
    let token = once.token();
    assert!(token > first);
    assert_eq!(many.token(), token);
    assert_eq!(client.hash("x"), "alice=2");
    assert_eq!(client.hash("y"), "alice=2");
    once.client.in_step();
    // In a mode, with which many keys do not mix.
    let (mut single, mut once, mut many) = setup(&mut client, "READ");
    client.int("RLOCK.RELEASE x h");
    single.token();
    assert_eq!(code(&once.end()), "WRONGMODE");
    assert_eq!(code(&many.end()), "WRONGMODE");
    assert_eq!(client.waiters("y"), 0);
    client.int("RLOCK.RELEASE y h");
    client.is_free("y");
}
