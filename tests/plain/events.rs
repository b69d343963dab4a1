//! Keyspace notifications: what a tool that watches keys sees of a lock.

use std::collections::BTreeMap;

use crate::support::{eventually, Ask, Listener, Server, Waiter};

const ACQUIRED: [&str; 3] = ["hset", "expire", "rlock.acquired"];

/// The events so far, all of which must be those of one key.
#[track_caller]
fn of(events: &mut Listener, key: &str) -> Vec<String> {
    names(events.events(), key)
}

#[track_caller]
fn names(events: Vec<(String, String)>, key: &str) -> Vec<String> {
    let other: Vec<_> = events.iter().filter(|(_, k)| k != key).collect();
    assert!(other.is_empty(), "{other:?}");
    events.into_iter().map(|(event, _)| event).collect()
}

/// Collects events until `last` was seen on the key.
#[track_caller]
fn until(events: &mut Listener, last: &str, key: &str) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    eventually(last, || {
        seen.extend(events.events());
        seen.iter().any(|(event, k)| event == last && k == key)
    });
    seen
}

#[test]
fn each_change_of_a_lock_is_announced_in_order() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    for (request, expected) in [
        ("RLOCK.ACQUIRE job alice 60000", ACQUIRED.as_slice()),
        (
            "RLOCK.ACQUIRE job alice 1000",
            &["hincrby", "rlock.acquired"],
        ),
        (
            "RLOCK.ACQUIRE job alice 90000",
            &["hincrby", "expire", "rlock.acquired"],
        ),
        ("RLOCK.RENEW job alice 60000", &["expire", "rlock.renewed"]),
        ("RLOCK.RENEW job alice 30000", &["expire", "rlock.renewed"]),
        ("RLOCK.RELEASE job alice", &["hincrby", "rlock.released"]),
        ("RLOCK.RELEASE job alice", &["hincrby", "rlock.released"]),
        ("RLOCK.RELEASE job alice", &["del", "rlock.released"]),
        ("RLOCK.ACQUIRE job bob 60000", &ACQUIRED),
        ("RLOCK.ACQUIRE job bob 1000", &["hincrby", "rlock.acquired"]),
        ("RLOCK.RELEASE job bob ALL", &["del", "rlock.released"]),
        ("RLOCK.ACQUIRE job carol 60000", &ACQUIRED),
        ("RLOCK.FORCE job", &["del", "rlock.forced"]),
    ] {
        client.int(request);
        assert_eq!(of(&mut events, "job"), expected, "{request}");
    }
}

#[test]
fn what_changes_nothing_is_not_announced() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut events = Listener::keyspace(&server, 0);
    for request in [
        "RLOCK.ACQUIRE job bob 1000",
        "RLOCK.ACQUIRE job bob 1000 BLOCK 2",
        "RLOCK.RELEASE job bob",
        "RLOCK.RENEW job bob 1000",
        "RLOCK.RELEASE free alice",
        "RLOCK.FORCE free",
        "RLOCK.INFO job",
        "RLOCK.INFO free",
        "RLOCK.OWNER",
    ] {
        client.ask(request);
        assert_eq!(events.events(), [], "{request}");
    }
    let waiter = Waiter::with(&server, "job carol 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    assert_eq!(events.events(), []);
    waiter.client.close();
    eventually("it waits no more", || client.waiters("job") == 0);
    assert_eq!(events.events(), []);
}

#[test]
fn rlocks_own_events_are_of_the_class_of_modules() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    client.ok("CONFIG SET notify-keyspace-events Ed");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RENEW job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(
        of(&mut events, "job"),
        ["rlock.acquired", "rlock.renewed", "rlock.released"]
    );
    client.ok("CONFIG SET notify-keyspace-events Egh");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(of(&mut events, "job"), ["hset", "expire", "del"]);
}

#[test]
fn events_are_those_of_the_locks_database() {
    let server = Server::start();
    let mut client = server.raw();
    let mut here = Listener::keyspace(&server, 0);
    let mut there = Listener::keyspace(&server, 3);
    client.ok("SELECT 3");
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut in_3 = server.raw();
    in_3.ok("SELECT 3");
    let waiter = Waiter::on(in_3, "RLOCK.ACQUIRE job bob 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    client.int("PEXPIRE job 30");
    let seen = names(until(&mut there, "rlock.expired", "job"), "job");
    let expected = [&ACQUIRED[..], &["expire", "expired", "rlock.expired"]].concat();
    assert_eq!(seen[..6], expected);
    drop(waiter);
    assert_eq!(here.events(), []);
}

#[test]
fn an_expiry_is_announced_by_the_server_and_by_rlock() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    client.succeed(&["RLOCK.ACQUIRE job alice 40", "RLOCK.ACQUIRE job alice 1"]);
    let seen = names(until(&mut events, "rlock.expired", "job"), "job");
    let expected = [
        &ACQUIRED[..],
        &["hincrby", "rlock.acquired", "expired", "rlock.expired"],
    ]
    .concat();
    assert_eq!(seen, expected);
    assert_eq!(client.int("RLOCK.FORCE job"), 0);
    assert_eq!(events.events(), []);
}

#[test]
fn a_hand_over_is_announced_as_an_end_and_a_beginning() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut waiters = Vec::from(
        ["bob", "carol", "dave", "erin"]
            .map(|owner| Waiter::with(&server, &format!("job {owner} 60000 BLOCK 0"))),
    );
    assert_eq!(client.waiters("job"), 4);
    let mut events = Listener::keyspace(&server, 0);
    let mut granted = || waiters.remove(0).token();

    client.int("RLOCK.RELEASE job alice");
    granted();
    let released = [&["del", "rlock.released"], &ACQUIRED[..]].concat();
    assert_eq!(of(&mut events, "job"), released);

    client.int("RLOCK.FORCE job");
    granted();
    let forced = [&["del", "rlock.forced"], &ACQUIRED[..]].concat();
    assert_eq!(of(&mut events, "job"), forced);

    client.int("RLOCK.RENEW job carol 30");
    granted();
    let expired = [
        &["expire", "rlock.renewed", "expired", "rlock.expired"],
        &ACQUIRED[..],
    ]
    .concat();
    assert_eq!(of(&mut events, "job"), expired);

    client.int("DEL job");
    granted();
    let deleted = [&["del"], &ACQUIRED[..]].concat();
    assert_eq!(of(&mut events, "job"), deleted);
}

#[test]
fn each_lease_that_ran_out_is_announced_exactly_once() {
    const LOCKS: usize = 60;
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    for number in 0..LOCKS {
        client.int(&format!("RLOCK.ACQUIRE job:{number} alice {}", 20 + number));
    }
    // Who finds the ended lock first may be anybody: the server, a reader, a
    // try, the timer. A reader and a try at work all the time:
    let mut expired: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |seen: Vec<(String, String)>| {
        for (event, key) in seen {
            if event == "rlock.expired" {
                *expired.entry(key).or_default() += 1;
            }
        }
        expired.len()
    };
    let mut turn = 0;
    eventually("all of them are over", || {
        for _ in 0..50 {
            turn += 1;
            let key = format!("job:{}", turn * 7 % LOCKS);
            match turn % 4 {
                0 => client.ask(&format!("EXISTS {key}")),
                1 => client.ask(&format!("HGETALL {key}")),
                2 => client.ask(&format!("RLOCK.RELEASE {key} bob")),
                _ => client.ask(&format!("RLOCK.INFO {key}")),
            };
        }
        count(events.events()) == LOCKS
    });
    // One that ends later than anything that could still come.
    client.int("RLOCK.ACQUIRE last alice 150");
    let total = count(until(&mut events, "rlock.expired", "last"));
    assert_eq!(total, LOCKS + 1);
    assert!(expired.values().all(|times| *times == 1), "{expired:?}");
}

#[test]
fn a_try_that_finds_an_ended_lease_announces_it_first() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    client.ok("MULTI");
    client.text("RLOCK.ACQUIRE job alice 60000");
    client.ask("EXEC");
    client.int("RLOCK.RENEW job alice 25");
    eventually("bob finds it free", || {
        !client.refused("RLOCK.ACQUIRE job bob 60000")
    });
    let seen = of(&mut events, "job");
    let expected = [
        &ACQUIRED[..],
        &["expire", "rlock.renewed", "expired", "rlock.expired"],
        &ACQUIRED,
    ]
    .concat();
    assert_eq!(seen, expected);
}

#[test]
fn what_ended_otherwise_did_not_expire() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    client.succeed(&[
        "RLOCK.ACQUIRE released alice 200",
        "RLOCK.ACQUIRE all alice 200",
        "RLOCK.ACQUIRE forced alice 200",
        "RLOCK.ACQUIRE del alice 200",
        "RLOCK.ACQUIRE unlink alice 200",
        "RLOCK.ACQUIRE replaced alice 200",
        "RLOCK.ACQUIRE longer alice 200",
        "RLOCK.ACQUIRE kept alice 200",
        "RLOCK.RELEASE released alice",
        "RLOCK.RELEASE all alice ALL",
        "RLOCK.FORCE forced",
        "DEL del",
        "UNLINK unlink",
        "SET replaced 1",
        "RLOCK.RENEW longer alice 60000",
        "PERSIST kept",
        "SELECT 1",
        "RLOCK.ACQUIRE flushed alice 200",
        "FLUSHDB",
        "SELECT 0",
        "RLOCK.ACQUIRE last alice 400",
    ]);
    let seen = until(&mut events, "rlock.expired", "last");
    let expired: Vec<_> = seen
        .iter()
        .filter(|(event, _)| event.ends_with("expired"))
        .map(|(event, key)| (event.as_str(), key.as_str()))
        .collect();
    assert_eq!(expired, [("expired", "last"), ("rlock.expired", "last")]);
    assert_eq!(client.int("EXISTS longer kept replaced"), 3);
}

#[test]
fn a_renamed_lock_expires_under_its_new_name() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    client.succeed(&[
        "RLOCK.ACQUIRE job alice 100",
        "RENAME job task",
        "RLOCK.ACQUIRE last alice 200",
    ]);
    let seen = until(&mut events, "rlock.expired", "last");
    let expired: Vec<_> = seen
        .iter()
        .filter(|(event, _)| event == "rlock.expired")
        .map(|(_, key)| key.as_str())
        .collect();
    assert_eq!(expired, ["task", "last"]);
}
