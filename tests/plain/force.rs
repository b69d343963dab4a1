//! RLOCK.FORCE: an operator frees a lock, whoever holds it.

use redis::Value;

use crate::support::{bulk, eventually, Ask, Server, Waiter};

#[test]
fn a_held_lock_is_freed_with_all_its_holds() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.int("RLOCK.ACQUIRE job alice 10000");
    client.int("RLOCK.ACQUIRE job alice 10000");
    assert_eq!(server.raw().int("RLOCK.FORCE job"), 1);
    assert_eq!(client.int("EXISTS job"), 0);
    assert!(client
        .error("RLOCK.RELEASE job alice")
        .starts_with("NOTHELD "));
    assert!(client
        .error("RLOCK.RENEW job alice 1000")
        .starts_with("NOTHELD "));
    assert!(client.int("RLOCK.ACQUIRE job alice 10000") > token);
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
}

#[test]
fn a_free_lock_stays_free() {
    let server = Server::start();
    let mut client = server.raw();
    assert_eq!(client.int("RLOCK.FORCE job"), 0);
    client.int("RLOCK.ACQUIRE job alice 10000");
    client.ok("SELECT 1");
    assert_eq!(client.int("RLOCK.FORCE job"), 0);
    client.ok("SELECT 0");
    assert_eq!(client.int("RLOCK.FORCE job"), 1);
    assert_eq!(client.int("RLOCK.FORCE job"), 0);
    client.int("RLOCK.ACQUIRE job alice 20");
    eventually("the lease is over", || client.int("EXISTS job") == 0);
    assert_eq!(client.int("RLOCK.FORCE job"), 0);
}

#[test]
fn the_next_waiter_has_the_lock_in_the_same_step() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.int("RLOCK.ACQUIRE job alice 10000");
    let mut waiter = Waiter::with(&server, "job bob 20000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    client.send_all(&[&["RLOCK.FORCE", "job"], &["HGETALL", "job"]]);
    let bob = Value::Array(vec![bulk("bob"), bulk("1")]);
    assert_eq!(client.read_many(2), [Value::Int(1), bob]);
    match waiter.client.read() {
        Value::Int(token) => assert!(token > first),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lock_that_redisson_took_can_be_freed() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET job uuid:1 2");
    client.int("PEXPIRE job 60000");
    assert_eq!(client.int("RLOCK.FORCE job"), 1);
    assert_eq!(client.int("EXISTS job"), 0);
}
