//! RLOCK.RENEW: the lease is what was asked for, from now on.

use crate::support::{eventually, lease_from, now_ms, Ask, Server};

#[test]
fn the_lease_is_set_longer_or_shorter() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 10000");
    for lease in [60_000, 5_000, 10_000, 5_000, (1 << 53) - 1, 3_000] {
        let request = format!("RLOCK.RENEW job alice {lease}");
        let (reply, ends) = lease_from(lease, || client.int(&request));
        assert_eq!(reply, 1);
        let deadline = client.deadline("job");
        assert!(ends.contains(&deadline), "{deadline} in {ends:?}");
    }
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
}

#[test]
fn holds_are_not_counted_by_it() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 10000");
    client.int("RLOCK.ACQUIRE job alice 10000");
    assert_eq!(client.int("RLOCK.RENEW job alice 20000"), 1);
    assert_eq!(client.texts("HGETALL job"), ["alice", "2"]);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
}

#[test]
fn a_shorter_lease_ends_sooner() {
    let server = Server::start();
    let mut client = server.raw();
    // So that nobody but rlock ends it.
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    client.int("RLOCK.ACQUIRE job alice 3600000");
    assert_eq!(client.int("RLOCK.RENEW job alice 60"), 1);
    let deadline = client.deadline("job");
    server
        .raw()
        .int("RLOCK.ACQUIRE job bob 10000 BLOCK 3600000");
    assert!(now_ms() > deadline);
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);
}

#[test]
fn a_longer_lease_outlives_the_first() {
    let server = Server::start();
    let mut client = server.raw();
    let (_, ends) = lease_from(60, || {
        client.succeed(&["RLOCK.ACQUIRE job alice 60", "RLOCK.RENEW job alice 60000"])
    });
    let state = client.state(b"job");
    // A lock whose lease ends later than the first one would have.
    client.int("RLOCK.ACQUIRE other alice 100");
    eventually("another lease runs out", || client.int("EXISTS other") == 0);
    assert!(now_ms() > *ends.end());
    assert_eq!(client.state(b"job"), state);
    assert!(client.refused("RLOCK.ACQUIRE job bob 1000"));
}

#[test]
fn who_does_not_hold_the_lock_cannot_renew_it() {
    let server = Server::start();
    let mut client = server.raw();
    let line = |owner| {
        format!(
            "NOTHELD owner '{owner}' does not hold 'job': its lease ended, it was released, \
             or never acquired"
        )
    };
    assert_eq!(client.error("RLOCK.RENEW job alice 1000"), line("alice"));
    assert_eq!(client.int("EXISTS job"), 0);

    client.int("RLOCK.ACQUIRE job alice 10000");
    let (before, changes) = (client.state(b"job"), client.changes());
    assert_eq!(client.error("RLOCK.RENEW job bob 60000"), line("bob"));
    client.ok("SELECT 1");
    assert_eq!(client.error("RLOCK.RENEW job alice 60000"), line("alice"));
    client.ok("SELECT 0");
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);
}

#[test]
fn a_lease_that_ended_cannot_be_renewed() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 30");
    eventually("the lease is over", || client.int("EXISTS job") == 0);
    assert!(client
        .error("RLOCK.RENEW job alice 1000")
        .starts_with("NOTHELD "));
    assert_eq!(client.int("EXISTS job"), 0);
}

#[test]
fn a_hold_that_redisson_took_can_be_renewed() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET job uuid:1 2");
    client.int("PEXPIRE job 1000");
    let (_, ends) = lease_from(60_000, || client.int("RLOCK.RENEW job uuid:1 60000"));
    assert!(ends.contains(&client.deadline("job")));
    assert_eq!(client.texts("HGETALL job"), ["uuid:1", "2"]);
}
