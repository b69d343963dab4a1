//! RLOCK.RELEASE: what ends, what stays, who is next.

use redis::Value;

use crate::support::{bulk, eventually, Ask, Server, Waiter};

#[test]
fn the_last_hold_frees_the_lock() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 10000");
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
    client.int("RLOCK.ACQUIRE job bob 10000");
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);
}

#[test]
fn a_nested_hold_ends_alone_and_the_lease_stays() {
    let server = Server::start();
    let mut client = server.raw();
    for lease in [10_000, 30_000, 20_000] {
        client.int(&format!("RLOCK.ACQUIRE job alice {lease}"));
    }
    let deadline = client.deadline("job");
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 2);
    assert_eq!(client.texts("HGETALL job"), ["alice", "2"]);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
    assert_eq!(client.deadline("job"), deadline);
    assert!(client.refused("RLOCK.ACQUIRE job bob 10000"));
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
}

#[test]
fn all_ends_every_hold_of_the_owner() {
    let server = Server::start();
    let mut client = server.raw();
    for _ in 0..5 {
        client.int("RLOCK.ACQUIRE job alice 10000");
    }
    assert_eq!(client.int("RLOCK.RELEASE job alice ALL"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
    client.int("RLOCK.ACQUIRE job alice 10000");
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
    assert_eq!(client.int("RLOCK.RELEASE job alice aLL"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
}

#[test]
fn who_does_not_hold_the_lock_cannot_release_it() {
    let server = Server::start();
    let mut client = server.raw();
    let line = |owner| {
        format!(
            "NOTHELD owner '{owner}' does not hold 'job': its lease ended, it was released, \
             or never acquired"
        )
    };
    for request in ["RLOCK.RELEASE job alice", "RLOCK.RELEASE job alice ALL"] {
        assert_eq!(client.error(request), line("alice"));
    }
    assert_eq!(client.int("EXISTS job"), 0);

    client.int("RLOCK.ACQUIRE job alice 10000");
    let (before, changes) = (client.state(b"job"), client.changes());
    for request in ["RLOCK.RELEASE job bob", "RLOCK.RELEASE job bob ALL"] {
        assert_eq!(client.error(request), line("bob"));
    }
    client.ok("SELECT 1");
    assert_eq!(client.error("RLOCK.RELEASE job alice"), line("alice"));
    client.ok("SELECT 0");
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);

    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    assert_eq!(client.error("RLOCK.RELEASE job alice"), line("alice"));
}

#[test]
fn a_lease_that_ended_ended_all_holds() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 40");
    client.int("RLOCK.ACQUIRE job alice 40");
    eventually("the lease is over", || client.int("EXISTS job") == 0);
    for request in ["RLOCK.RELEASE job alice", "RLOCK.RELEASE job alice ALL"] {
        assert!(client.error(request).starts_with("NOTHELD "), "{request}");
    }
    client.int("RLOCK.ACQUIRE job bob 10000");
    assert!(client
        .error("RLOCK.RELEASE job alice")
        .starts_with("NOTHELD "));
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);
}

#[test]
fn any_connection_may_release_for_the_owner() {
    let server = Server::start();
    server.raw().int("RLOCK.ACQUIRE job alice 10000");
    assert_eq!(server.raw().int("RLOCK.RELEASE job alice"), 0);
    assert_eq!(server.raw().int("EXISTS job"), 0);
}

#[test]
fn a_hold_that_redisson_took_can_be_released() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET job uuid:1 3");
    client.int("PEXPIRE job 60000");
    let deadline = client.deadline("job");
    assert_eq!(client.int("RLOCK.RELEASE job uuid:1"), 2);
    assert_eq!(client.texts("HGETALL job"), ["uuid:1", "2"]);
    assert_eq!(client.deadline("job"), deadline);
    assert_eq!(client.int("RLOCK.RELEASE job uuid:1 ALL"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
}

#[test]
fn the_next_waiter_has_the_lock_in_the_same_step() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.int("RLOCK.ACQUIRE job alice 10000");
    client.int("RLOCK.ACQUIRE job alice 10000");
    let mut waiter = Waiter::with(&server, "job bob 20000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    let holds = |owner: &str, count: &str| Value::Array(vec![bulk(owner), bulk(count)]);
    let (release, look) = ("RLOCK.RELEASE job alice", "HGETALL job");
    assert_eq!(
        client.ask_all(&[release, look, release, look]),
        [
            Value::Int(1),
            holds("alice", "1"),
            Value::Int(0),
            holds("bob", "1")
        ]
    );
    assert!(waiter.token() > first);
}
