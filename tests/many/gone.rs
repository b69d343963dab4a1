//! Keys that go, change or are taken under those who wait for many of them.

use crate::support::{both_ways, each, int, now_ms, Ask, Server, Way, LONG};

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

both_ways!(whatever_frees_the_last_key_grants_all);
fn whatever_frees_the_last_key_grants_all(by: Way) {
    each(&WAYS, |way, server, client| {
        client.take("y", "bob");
        let mut many = by.many(server, "x y z", "m");
        client.succeed(&[way]);
        many.token();
        for key in ["x", "y", "z"] {
            assert_eq!(client.hash(key), "m=1", "{way}");
            assert_eq!(client.waiters(key), 0, "{way}");
        }
        assert_eq!(client.int("RLOCK.MRELEASE 3 x y z m"), 3, "{way}");
        many.client.in_step();
    });
}

both_ways!(leases_that_end_one_after_the_other_are_waited_for);
fn leases_that_end_one_after_the_other_are_waited_for(by: Way) {
    let server = Server::start_with(&["--hz", "1"]);
    let mut client = server.raw();
    for key in ["a", "b", "c"] {
        client.take(key, key);
    }
    let mut many = by.many(&server, "a b c", "m");
    let replies = client.succeed(&[
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

both_ways!(a_foreign_client_that_takes_a_reserved_key_is_waited_for);
fn a_foreign_client_that_takes_a_reserved_key_is_waited_for(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "m");
    let mut behind = by.wait(&server, "x", "b");
    client.succeed(&["MULTI", "HSET x uuid:1 1", "PEXPIRE x 100000", "EXEC"]);
    assert_eq!(client.mode("x"), "exclusive");
    client.int("RLOCK.RELEASE y bob");
    client.is_reserved("y");
    assert_eq!(client.waiters("x"), 2);
    client.int("DEL x");
    many.token();
    client.int("RLOCK.MRELEASE 2 x y m");
    behind.token();
}

both_ways!(a_key_that_is_no_lock_is_waited_for_until_it_is_gone);
fn a_key_that_is_no_lock_is_waited_for_until_it_is_gone(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for (overwrite, free) in [
        ("SET x v", "DEL x"),
        ("RPUSH x a", "LPOP x"),
        ("SADD x a", "SPOP x"),
    ] {
        client.ok("FLUSHALL");
        client.take("y", "bob");
        let mut many = by.many(&server, "x y", "m");
        client.ask(overwrite);
        let line = client.error("RLOCK.MACQUIRE 2 z x c 1000");
        assert!(line.starts_with("WRONGTYPE "), "{line}");
        client.int("RLOCK.RELEASE y bob");
        client.is_reserved("y");
        client.ask(free);
        many.token();
        assert_eq!(client.hash("x"), "m=1", "{overwrite}");
        many.client.in_step();
    }
}

both_ways!(queues_are_those_of_their_database);
fn queues_are_those_of_their_database(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "m");
    let mut elsewhere = server.raw();
    elsewhere.ok("SELECT 2");
    elsewhere.is_free("x");
    elsewhere.int(&format!("RLOCK.MACQUIRE 2 x y other {LONG}"));
    client.is_reserved("x");
    elsewhere.ok("FLUSHDB");
    client.is_reserved("x");
    // What was here is there, and what is here now is free.
    client.ok("SWAPDB 0 2");
    many.token();
    assert_eq!(client.hash("x"), "m=1");
    assert_eq!(elsewhere.hash("y"), "bob=1");
}

both_ways!(a_reload_keeps_reservations);
fn a_reload_keeps_reservations(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "m");
    client.ok("DEBUG RELOAD");
    client.is_reserved("x");
    assert!(client.refused("RLOCK.ACQUIRE x c 1000"));
    client.int("RLOCK.RELEASE y bob");
    many.token();
    client.int("RLOCK.MRELEASE 2 x y m");
    client.nothing_left("x");
}
