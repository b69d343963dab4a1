//! Keys that go, change or are taken under those who wait for many of them.

use redis::Value;

use super::waiting::{is_reserved, wait_many};
use crate::support::ask::Ask;
use crate::support::locks::{holder, info, int, is_free, now_ms, Waiter, LONG};
use crate::support::read_write::{layout, mode, nothing_left, waiters};
use crate::support::Server;

/// What frees the name `y`.
const WAYS: [&str; 12] = [
    "RLOCK.RELEASE y bob",
    "RLOCK.FORCE y",
    "DEL y",
    "UNLINK y",
    "PEXPIRE y 30",
    "PEXPIREAT y 1",
    "RLOCK.RENEW y bob 30",
    "RENAME y elsewhere",
    "MOVE y 5",
    "FLUSHDB",
    "FLUSHALL",
    "SWAPDB 0 6",
];

#[test]
fn whatever_frees_the_last_key_grants_all() {
    let server = Server::start();
    for way in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
        let mut many = wait_many(&server, "x y z", "m");
        let done = client.ask(way);
        assert!(!matches!(done, Value::ServerError(_)), "{way}: {done:?}");
        many.token();
        for key in ["x", "y", "z"] {
            assert_eq!(holder(&mut client, key).as_deref(), Some("m"), "{way}");
            assert_eq!(waiters(&mut client, key), 0, "{way}");
        }
        assert_eq!(client.int("RLOCK.MRELEASE 3 x y z m"), 3, "{way}");
        many.in_step();
    }
}

#[test]
fn leases_that_end_one_after_the_other_are_waited_for() {
    let server = Server::start_with(&["--hz", "1"]);
    let mut client = server.raw();
    for key in ["a", "b", "c"] {
        client.int(&format!("RLOCK.ACQUIRE {key} {key} {LONG}"));
    }
    let mut many = wait_many(&server, "a b c", "m");
    let replies = client.at_once(&[
        "RLOCK.RENEW a a 150",
        "RLOCK.RENEW c c 100",
        "RLOCK.RENEW b b 300",
        "PEXPIRETIME b",
    ]);
    many.token();
    assert!(now_ms() >= int(replies[3].clone()), "not before");
    let deadline = client.deadline("a");
    assert_eq!(client.deadline("b"), deadline);
    assert_eq!(client.deadline("c"), deadline);
}

#[test]
fn a_foreign_client_that_takes_a_reserved_key_is_waited_for() {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
    let mut many = wait_many(&server, "x y", "m");
    let mut behind = Waiter::new(&server, "x", "b");
    client.at_once(&["MULTI", "HSET x uuid:1 1", "PEXPIRE x 100000", "EXEC"]);
    assert_eq!(mode(&mut client, "x"), "exclusive");
    client.int("RLOCK.RELEASE y bob");
    is_reserved(&mut client, "y");
    assert_eq!(info(&mut client, "x").waiters, 2);
    client.int("DEL x");
    many.token();
    client.int("RLOCK.MRELEASE 2 x y m");
    behind.token();
}

#[test]
fn a_key_that_is_no_lock_is_waited_for_until_it_is_gone() {
    let server = Server::start();
    let mut client = server.raw();
    for (overwrite, free) in [
        ("SET x v", "DEL x"),
        ("RPUSH x a", "LPOP x"),
        ("SADD x a", "SPOP x"),
    ] {
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
        let mut many = wait_many(&server, "x y", "m");
        client.ask(overwrite);
        let line = client.error("RLOCK.MACQUIRE 2 z x c 1000");
        assert!(line.starts_with("WRONGTYPE "), "{line}");
        client.int("RLOCK.RELEASE y bob");
        is_reserved(&mut client, "y");
        client.ask(free);
        many.token();
        assert_eq!(layout(&mut client, "x"), "m=1", "{overwrite}");
        many.in_step();
    }
}

#[test]
fn queues_are_those_of_their_database() {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
    let mut many = wait_many(&server, "x y", "m");
    let mut elsewhere = server.raw();
    elsewhere.ok("SELECT 2");
    is_free(&mut elsewhere, "x");
    elsewhere.int(&format!("RLOCK.MACQUIRE 2 x y other {LONG}"));
    is_reserved(&mut client, "x");
    elsewhere.ok("FLUSHDB");
    is_reserved(&mut client, "x");
    // What was here is there, and what is here now is free.
    client.ok("SWAPDB 0 2");
    many.token();
    assert_eq!(holder(&mut client, "x").as_deref(), Some("m"));
    assert_eq!(holder(&mut elsewhere, "y").as_deref(), Some("bob"));
}

#[test]
fn a_reload_keeps_reservations() {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
    let mut many = wait_many(&server, "x y", "m");
    client.ok("DEBUG RELOAD");
    is_reserved(&mut client, "x");
    assert!(client.refused("RLOCK.ACQUIRE x c 1000"));
    client.int("RLOCK.RELEASE y bob");
    many.token();
    client.int("RLOCK.MRELEASE 2 x y m");
    nothing_left(&mut client, "x");
}
