//! RLOCK.ACQUIRE: who gets a lock, who does not, and what is written.

use redis::Value;

use crate::support::{bulk, eventually, lease_from, now_ms, Ask, Server};

#[test]
fn a_free_lock_is_granted_and_written_as_a_hash_with_a_ttl() {
    let server = Server::start();
    let mut client = server.raw();
    let (token, ends) = lease_from(10_000, || client.int("RLOCK.ACQUIRE job alice 10000"));
    assert!(token > 0);
    assert_eq!(client.text("TYPE job"), "hash");
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
    let deadline = client.deadline("job");
    assert!(ends.contains(&deadline), "{deadline} in {ends:?}");
    assert_eq!(client.int("DBSIZE"), 1);
}

#[test]
fn a_held_lock_is_refused_with_null_and_left_alone() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 10000");
    let (before, changes) = (client.state(b"job"), client.changes());
    let mut other = server.raw();
    for options in ["", "ONCE", "BLOCK 1", "BLOCK 1 ONCE"] {
        let request = format!("RLOCK.ACQUIRE job bob 60000 {options}");
        assert!(other.refused(&request), "{request}");
        // Who asks on the holder's connection is another owner all the same.
        assert!(client.refused(&request), "{request}");
    }
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);
}

#[test]
fn a_free_lock_is_granted_at_once_whatever_the_options() {
    let server = Server::start();
    let mut client = server.raw();
    for options in [
        "",
        "ONCE",
        "BLOCK 0",
        "BLOCK 60000",
        "BLOCK 9007199254740991 ONCE",
    ] {
        let (_, ends) = lease_from(5_000, || {
            client.int(&format!("RLOCK.ACQUIRE job alice 5000 {options}"))
        });
        assert_eq!(client.texts("HGETALL job"), ["alice", "1"], "{options}");
        assert!(ends.contains(&client.deadline("job")), "{options}");
        assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    }
}

#[test]
fn a_lock_is_free_again_when_its_lease_is_over_and_not_before() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 120");
    let deadline = client.deadline("job");
    eventually("the lease runs out", || {
        !client.refused("RLOCK.ACQUIRE job bob 10000")
    });
    assert!(now_ms() > deadline);
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);
    assert!(client
        .error("RLOCK.RELEASE job alice")
        .starts_with("NOTHELD "));
}

#[test]
fn locks_of_other_names_and_databases_are_others() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 10000");
    client.int("RLOCK.ACQUIRE Job bob 10000");
    client.int("RLOCK.ACQUIRE job: bob 10000");
    client.ok("SELECT 1");
    client.int("RLOCK.ACQUIRE job carol 20000");
    assert_eq!(client.texts("HGETALL job"), ["carol", "1"]);
    client.ok("SELECT 0");
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
    assert_eq!(client.texts("HGETALL Job"), ["bob", "1"]);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    client.ok("SELECT 1");
    assert_eq!(client.texts("HGETALL job"), ["carol", "1"]);
}

#[test]
fn one_owner_may_hold_many_locks() {
    let server = Server::start();
    let mut client = server.raw();
    for number in 0..100 {
        client.int(&format!("RLOCK.ACQUIRE job:{number} alice 10000"));
    }
    assert_eq!(client.int("DBSIZE"), 100);
    for number in 0..100 {
        assert_eq!(client.int(&format!("RLOCK.RELEASE job:{number} alice")), 0);
    }
    assert_eq!(client.int("DBSIZE"), 0);
}

#[test]
fn leases_reach_from_one_ms_to_the_longest() {
    let server = Server::start();
    let mut client = server.raw();
    let longest = (1 << 53) - 1;
    let (_, ends) = lease_from(longest, || {
        client.int(&format!("RLOCK.ACQUIRE long alice {longest}"))
    });
    let deadline = client.deadline("long");
    assert!(ends.contains(&deadline), "{deadline} in {ends:?}");
    assert!(client.refused("RLOCK.ACQUIRE long bob 1"));

    client.int("RLOCK.ACQUIRE short alice 1");
    eventually("the lease of 1 ms is over", || {
        !client.refused("RLOCK.ACQUIRE short bob 60000")
    });
    assert_eq!(client.texts("HGETALL short"), ["bob", "1"]);
    assert_eq!(client.int("RLOCK.RELEASE long alice"), 0);
}

#[test]
fn a_lock_that_redisson_took_is_held() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET job uuid:1 2");
    client.int("PEXPIRE job 60000");
    let before = client.state(b"job");
    assert!(client.refused("RLOCK.ACQUIRE job alice 1000"));
    assert_eq!(client.state(b"job"), before);
    let token = client.token("RLOCK.ACQUIRE job uuid:1 1000 ONCE");
    assert_eq!(client.texts("HGETALL job"), ["uuid:1", "2"]);
    assert_eq!(client.int("RLOCK.ACQUIRE job uuid:1 1000"), token);
    assert_eq!(client.texts("HGETALL job"), ["uuid:1", "3"]);
}

#[test]
fn a_lock_that_redisson_took_is_granted_when_its_lease_is_over() {
    let server = Server::start();
    let mut client = server.raw();
    // So that nobody but rlock ends it.
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    client.ok("MULTI");
    client.ask("HSET job uuid:1 1");
    client.ask("PEXPIRE job 50");
    client.ask("RLOCK.ACQUIRE job alice 1000");
    let replies = client.ask("EXEC");
    assert_eq!(
        replies,
        Value::Array(vec![Value::Int(1), Value::Int(1), Value::Nil])
    );
    let mut waiter = server.raw();
    waiter.int("RLOCK.ACQUIRE job alice 60000 BLOCK 0");
    assert_eq!(
        client.ask("HGETALL job"),
        Value::Array(vec![bulk("alice"), bulk("1")])
    );
}
