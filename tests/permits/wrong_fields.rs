//! A field in the hash that is no permit makes it no lock: WRONGTYPE, and left as it is, as
//! long as the field is there.

use crate::support::{both_ways, eventually, Ask, RawClient, Server, Way, LONG};

/// What is no permit.
const WRONG: [&str; 12] = [
    "3",
    "x@1",
    "-1@99999999999999",
    "0@5",
    "@5",
    "1@",
    "1@-2",
    "01@5",
    "1@05",
    "1@5 ",
    "1000001@99999999999999",
    "1@99999999999999999999",
];

/// What is no `mode`.
const MODES: [&str; 12] = [
    "nonsense",
    "",
    "permits",
    "permits 4",
    "permits 4 4",
    "permits 4 4 2 1",
    "permits 4 4 x",
    "permits 0 4 2",
    "permits 4 0 2",
    "permits 4 4 -1",
    "permits 4 1000001 2",
    "PERMITS 4 4 2",
];

const LINE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value: 'k' is a \
                    hash, but not laid out as a lock; use another name";

/// All that can be asked of a lock with permits.
fn requests(owner: &str) -> Vec<String> {
    let lines = [
        "RLOCK.ACQUIRE k WHO 100000 LIMIT 4",
        "RLOCK.ACQUIRE k WHO 100000 LIMIT 4 PERMITS 2 ONCE",
        "RLOCK.ACQUIRE k WHO 100000 LIMIT 4 BLOCK 0",
        "RLOCK.ACQUIRE k WHO 100000 LIMIT 5",
        "RLOCK.ACQUIRE k WHO 100000",
        "RLOCK.ACQUIRE k WHO 100000 READ",
        "RLOCK.RELEASE k WHO PERMITS",
        "RLOCK.RELEASE k WHO PERMITS ALL",
        "RLOCK.RELEASE k WHO",
        "RLOCK.RENEW k WHO 100000 PERMITS",
        "RLOCK.LIMIT k 9",
        "RLOCK.FORCE k",
        "RLOCK.FORCE k IFOWNER WHO",
    ];
    lines.map(|line| line.replace("WHO", owner)).to_vec()
}

/// Every request is refused, and nothing changes.
#[track_caller]
fn is_no_lock(client: &mut RawClient, what: &str) {
    eventually(&format!("{what} was read"), || {
        let reply = client.ask("RLOCK.ACQUIRE k other 100000 LIMIT 9");
        matches!(reply, redis::Value::ServerError(error) if error.code() == "WRONGTYPE")
    });
    let before = (client.state(b"k"), client.changes());
    for owner in ["a", "other"] {
        for request in requests(owner) {
            assert_eq!(client.error(&request), LINE, "{what}: {request}");
        }
    }
    assert_eq!(client.error("RLOCK.INFO k"), LINE, "{what}");
    assert_eq!((client.state(b"k"), client.changes()), before, "{what}");
}

/// `a` has one of four for long.
fn held(server: &Server) -> RawClient {
    let mut client = server.raw();
    client.ok("FLUSHALL");
    client.take_permits("k", "a", "LIMIT 4");
    client
}

#[test]
fn an_owners_field_that_is_no_permit_is_its_own_error_at_once() {
    let server = Server::start();
    for wrong in WRONG {
        let mut client = held(&server);
        let set = ["HSET", "k", "a", wrong].map(str::to_owned).to_vec();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for request in requests("a").iter().filter(|line| line.contains(" a ")) {
            let replies = client.ask_all(&[set.clone(), words(request)]);
            let line = crate::support::error(replies[1].clone());
            assert_eq!(line, LINE, "{wrong}: {request}");
        }
        assert_eq!(client.text("HGET k a"), wrong);
        is_no_lock(&mut client, wrong);
    }
}

#[test]
fn anybodys_field_that_is_no_permit_is_an_error_for_all_once_it_is_read() {
    let server = Server::start();
    for wrong in WRONG {
        let mut client = held(&server);
        let words = ["HSET", "k", "x", wrong];
        client.int(&words);
        assert_eq!(client.error("RLOCK.INFO k"), LINE, "{wrong}");
        is_no_lock(&mut client, wrong);
        // And a lock again without it, with who held it before.
        client.int("HDEL k x");
        eventually("it is a lock", || {
            client.ask("RLOCK.RENEW k a 100000 PERMITS") == redis::Value::Int(1)
        });
        client.take_permits("k", "b", "LIMIT 4 PERMITS 3");
        client.permits_become("k", "a=1 b=3 mode=permits 4 4 4");
    }
}

#[test]
fn names_that_have_another_meaning_are_no_owners() {
    let server = Server::start();
    for name in ["x:write", ":write"] {
        let mut client = held(&server);
        let ends = client.permits_end("k", "a");
        client.int(&["HSET", "k", name, &format!("1@{ends}")]);
        is_no_lock(&mut client, name);
    }
}

both_ways!(a_field_that_is_put_right_is_a_permit_again);
fn a_field_that_is_put_right_is_a_permit_again(by: Way) {
    let server = Server::start();
    let mut client = held(&server);
    client.take_permits("k", "b", "LIMIT 4 PERMITS 3");
    let ends = client.permits_end("k", "a");
    let mut waiter = by.permits(&server, "k", "c", "LIMIT 4");
    client.int("HSET k a rubbish");
    is_no_lock(&mut client, "rubbish");
    waiter.still_waits();
    client.int(&["HSET", "k", "a", &format!("1@{ends}")]);
    eventually("it is a lock", || {
        client.ask("RLOCK.RENEW k a 100000 PERMITS") == redis::Value::Int(1)
    });
    waiter.still_waits();
    assert_eq!(client.held_by("k"), "a permits 1, b permits 3");
    assert_eq!(client.give_back("k", "a", 1), 0);
    waiter.token();
    assert_eq!(client.permits("k"), "b=3 c=1 mode=permits 4 4 4");
}

both_ways!(waiters_stay_until_the_name_is_free);
fn waiters_stay_until_the_name_is_free(by: Way) {
    let server = Server::start();
    for free in [
        "DEL k",
        "PEXPIRE k 30",
        "FLUSHALL",
        "RENAME k elsewhere",
        "HDEL k a x mode",
    ] {
        let mut client = held(&server);
        client.take_permits("k", "b", "LIMIT 4 PERMITS 3");
        let mut waiter = by.permits(&server, "k", "c", "LIMIT 2 PERMITS 2");
        assert_eq!(crate::support::code(&waiter.end()), "WRONGLIMIT");
        let mut waiter = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 2");
        client.int("HSET k x 3");
        is_no_lock(&mut client, free);
        waiter.still_waits();
        client.int("HDEL k b");
        client.succeed(&[free]);
        waiter.token();
        assert_eq!(client.permits("k"), "c=2 mode=permits 4 4 2", "{free}");
    }
}

both_ways!(a_mode_that_is_none_makes_it_no_lock);
fn a_mode_that_is_none_makes_it_no_lock(by: Way) {
    let server = Server::start();
    for wrong in MODES {
        let mut client = held(&server);
        let ends = client.permits_end("k", "a");
        let mut waiter = by.permits(&server, "k", "c", "LIMIT 4 PERMITS 4");
        client.int(&["HSET", "k", "mode", wrong]);
        is_no_lock(&mut client, wrong);
        waiter.still_waits();
        // Put right it is as before.
        client.int(&["HSET", "k", "mode", "permits 4 4 1"]);
        assert!(client.refused("RLOCK.ACQUIRE k b 1000 LIMIT 4"));
        assert_eq!(client.permits_end("k", "a"), ends);
        assert_eq!(client.give_back("k", "a", 1), 0);
        waiter.token();
    }
}

#[test]
fn a_mode_of_another_kind_makes_nobody_a_reader() {
    let server = Server::start();
    for mode in ["read", "write"] {
        let mut client = held(&server);
        client.int(&["HSET", "k", "mode", mode]);
        is_no_lock(&mut client, mode);
        client.int("HDEL k mode");
        is_no_lock(&mut client, "no mode");
        client.int(&["HSET", "k", "mode", "permits 4 4 1"]);
        assert_eq!(client.give_back("k", "a", 1), 0);
    }
    let mut client = held(&server);
    assert!(client.refused(&format!("RLOCK.ACQUIRE k b {LONG} READ")));
}
