//! Waiting for many keys of which the owner holds one already, loses one, or comes to
//! hold one in another way.

use crate::support::{code, eventually, Ask, RawClient, Server, Waiter, LONG};

#[test]
fn a_key_that_it_holds_already_is_not_waited_for() {
    let server = Server::start();
    let mut client = server.raw();
    client.take("x", "alice");
    client.take("y", "bob");
    let mut many = Waiter::many(&server, "x y", "alice");
    let mut behind = Waiter::new(&server, "x", "c");
    client.int("RLOCK.RELEASE y bob");
    many.token();
    assert_eq!(client.hash("x"), "alice=2");
    assert_eq!(client.hash("y"), "alice=1");
    client.int("RLOCK.MRELEASE 2 x y alice");
    client.int("RLOCK.RELEASE x alice");
    behind.token();
}

#[test]
fn a_key_that_it_loses_counts_from_its_place_of_arrival() {
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
        let mut many = Waiter::many(&server, "x y", "alice");
        let mut later = Waiter::new(&server, "x", "c");
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
        let mut before = Waiter::new(&server, "x", "c");
        let mut many = Waiter::many(&server, "x y", "alice");
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

#[test]
fn it_is_judged_anew_when_its_owner_comes_to_hold_one() {
    let server = Server::start();
    let mut client = server.raw();
    let setup = |client: &mut RawClient, words: &str| {
        client.ok("FLUSHALL");
        client.take("x", "h");
        client.take("y", "h");
        let single = Waiter::with(&server, &format!("x alice {LONG} BLOCK 0 {words}"));
        let once = Waiter::many_with(&server, "x y", "alice", "ONCE BLOCK 0");
        let many = Waiter::many(&server, "x y", "alice");
        (single, once, many)
    };
    // Granted alone: one says ONCE, the other goes on waiting for the rest.
    let (mut single, mut once, mut many) = setup(&mut client, "");
    client.int("RLOCK.RELEASE x h");
    single.token();
    assert_eq!(code(&once.client.read()), "HELD");
    once.client.in_step();
    many.still_waits();
    client.int("RLOCK.RELEASE y h");
    many.token();
    assert_eq!(client.hash("x"), "alice=2");
    // In a mode, with which many keys do not mix.
    let (mut single, mut once, mut many) = setup(&mut client, "READ");
    client.int("RLOCK.RELEASE x h");
    single.token();
    assert_eq!(code(&once.client.read()), "WRONGMODE");
    assert_eq!(code(&many.client.read()), "WRONGMODE");
    assert_eq!(client.waiters("y"), 0);
    client.int("RLOCK.RELEASE y h");
    client.is_free("y");
}
