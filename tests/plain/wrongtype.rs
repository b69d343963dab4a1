//! A key that is no lock: WRONGTYPE from every command, and nothing changes.

use crate::support::{Ask, RawClient, Server};

const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Every command on the key, for an owner that may be one of its fields.
fn requests(key: &str, owner: &str) -> Vec<String> {
    vec![
        format!("RLOCK.ACQUIRE {key} {owner} 1000"),
        format!("RLOCK.ACQUIRE {key} {owner} 1000 ONCE"),
        format!("RLOCK.ACQUIRE {key} {owner} 1000 BLOCK 0"),
        format!("RLOCK.ACQUIRE {key} * 1000"),
        format!("RLOCK.RELEASE {key} {owner}"),
        format!("RLOCK.RELEASE {key} {owner} ALL"),
        format!("RLOCK.RENEW {key} {owner} 1000"),
        format!("RLOCK.FORCE {key}"),
        format!("RLOCK.INFO {key}"),
    ]
}

#[track_caller]
fn refuses_all(client: &mut RawClient, key: &str, line: &str) {
    for ttl in [false, true] {
        if ttl {
            assert_eq!(client.int(&format!("PEXPIRE {key} 3600000")), 1);
        }
        let (before, changes) = (client.state(key.as_bytes()), client.changes());
        for owner in ["a", "other"] {
            for request in requests(key, owner) {
                assert_eq!(client.error(&request), line, "{request}");
            }
        }
        assert_eq!(client.state(key.as_bytes()), before, "{key}");
        assert_eq!(client.changes(), changes, "{key}");
    }
}

#[test]
fn other_types_are_no_locks() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("SET string 1");
    client.int("RPUSH list a 1");
    client.int("SADD set a");
    client.int("SADD numbers 1 2 3");
    client.int("ZADD zset 1 a");
    client.text("XADD stream * a 1");
    client.int("SETBIT bits 7 1");
    client.int("PFADD count a");
    client.int("GEOADD place 13.4 52.5 a");
    for key in [
        "string", "list", "set", "numbers", "zset", "stream", "bits", "count", "place",
    ] {
        refuses_all(&mut client, key, WRONGTYPE);
    }
    server.alive();
}

#[test]
fn hashes_of_another_layout_are_no_locks() {
    let server = Server::start();
    let mut client = server.raw();
    let many: Vec<String> = (0..600).map(|n| format!("{n} 1")).collect();
    let many = format!("a 1 {}", many.join(" "));
    for (key, fields) in [
        ("two", "a 1 b 1"),
        ("many", many.as_str()),
        ("word", "a x"),
        ("zero", "a 0"),
        ("negative", "a -1"),
        ("fraction", "a 1.5"),
        ("exponent", "a 1e3"),
        ("more-than-64-bits", "a 9223372036854775808"),
        ("mode-alone", "mode read"),
        ("unknown-mode", "mode shared a 1"),
        ("long-value", &format!("a {}", "1".repeat(100))),
    ] {
        assert!(client.int(&format!("HSET {key} {fields}")) > 0);
        let line =
            format!("{WRONGTYPE}: '{key}' is a hash, but not laid out as a lock; use another name");
        refuses_all(&mut client, key, &line);
    }
    server.alive();
}

/// The server's own HINCRBY refuses these, and so would every replica.
#[test]
fn a_count_is_written_as_the_server_writes_integers() {
    let server = Server::start();
    let mut client = server.raw();
    for (key, value) in [
        ("plus", "+1"),
        ("zeros", "01"),
        ("empty", ""),
        ("blank-before", " 1"),
        ("blank-after", "1 "),
        ("nul", "1\0"),
    ] {
        assert_eq!(client.int(&["HSET", key, "a", value]), 1);
        let line =
            format!("{WRONGTYPE}: '{key}' is a hash, but not laid out as a lock; use another name");
        refuses_all(&mut client, key, &line);
    }
}

#[test]
fn a_lock_that_became_something_else_is_lost() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job a 3600000");
    client.ok("SET job 1");
    refuses_all(&mut client, "job", WRONGTYPE);
    client.int("DEL job");
    client.int("RLOCK.ACQUIRE job a 3600000");
    client.int("HSET job b 1");
    let line =
        format!("{WRONGTYPE}: 'job' is a hash, but not laid out as a lock; use another name");
    refuses_all(&mut client, "job", &line);
    client.int("HDEL job a");
    assert!(client.error("RLOCK.RELEASE job a").starts_with("NOTHELD "));
    assert_eq!(client.int("RLOCK.RELEASE job b"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
}
