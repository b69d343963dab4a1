//! `rlock.watchdog-max` bounds how long a connection that is open, with an
//! application that is stuck, can keep a lock.

use crate::support::{ends_from, eventually, now_ms, pass, Ask, Bound, Listener, Server, Waiter};

const MAX: i64 = 4000;

#[test]
fn there_is_no_bound_unless_one_is_set() {
    let server = Server::start();
    let mut control = server.raw();
    let found = control.texts("CONFIG GET rlock.watchdog-max");
    assert_eq!(found, ["rlock.watchdog-max", "0"]);
    for bad in ["-1", "soon", "1.5", "5", "999"] {
        let line = format!("CONFIG SET rlock.watchdog-max {bad}");
        assert_eq!(control.code(&line), "ERR", "{bad}");
    }
    control.ok("CONFIG SET rlock.watchdog-max 4000");
    control.ok("CONFIG SET rlock.watchdog-max 0");
}

#[test]
fn a_hold_ends_when_its_time_is_over_and_its_connection_is_closed() {
    let max = MAX.to_string();
    let server = Server::start_with(&["--rlock.watchdog-max", &max]);
    let mut control = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let asked = now_ms();
    let mut held = Bound::with(&server, "k a 1200");
    let latest = *ends_from(asked, MAX).end();
    let mut next = Waiter::new(&server, "k", "b");
    // No renewal ever reaches beyond it.
    while now_ms() < asked + MAX - 1000 {
        let ends = control.int("PEXPIRETIME k");
        assert!(ends <= latest, "{ends} is after {latest}");
    }
    assert_eq!(control.watchdog("k"), Some(held.id));
    assert!(next.token() > held.token);
    assert!(now_ms() >= asked + MAX, "too early");
    assert!(held.client.is_closed());
    let told = events.events();
    let count = |name: &str| {
        let event = (name.to_owned(), "k".to_owned());
        told.iter().filter(|heard| **heard == event).count()
    };
    assert_eq!(count("rlock.expired"), 1, "{told:?}");
    assert_eq!(count("rlock.released"), 0, "{told:?}");
}

#[test]
fn a_renewal_by_the_holder_gives_it_all_the_time_again() {
    let max = MAX.to_string();
    let server = Server::start_with(&["--rlock.watchdog-max", &max]);
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 1200");
    let mut next = Waiter::new(&server, "k", "b");
    pass(now_ms() + 1500);
    let renewed = now_ms();
    assert_eq!(held.client.int("RLOCK.RENEW k a 1200"), 1);
    pass(renewed + MAX - 1000);
    assert_eq!(control.only("k").token, Some(held.token));
    next.token();
    assert!(now_ms() >= renewed + MAX, "too early");
    assert!(held.client.is_closed());
}

#[test]
fn it_is_the_bound_that_is_set_when_a_lock_is_handed_on() {
    let server = Server::start();
    let mut control = server.raw();
    let mut waiter = server.raw();
    for release in ["RLOCK.RELEASE k a", "RLOCK.RELEASE k a ALL"] {
        control.ok("CONFIG SET rlock.watchdog-max 0");
        control.token("RLOCK.ACQUIRE k a 600000");
        waiter.send("RLOCK.ACQUIRE k b 1000 BLOCK 0 WATCHDOG");
        eventually("it waits", || control.counter("rlock_waiting") == 1);
        control.ok("CONFIG SET rlock.watchdog-max 1000");
        control.int(release);
        crate::support::token(waiter.read());
        eventually(release, || control.int("EXISTS k") == 0);
        eventually("it is closed", || waiter.is_closed());
        waiter = server.raw();
    }
}

#[test]
fn holds_without_watchdog_know_no_such_bound() {
    let server = Server::start_with(&["--rlock.watchdog-max", "1000"]);
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    assert_eq!(control.int("RLOCK.RENEW k a 200000"), 1);
    assert!(control.ends("k") > now_ms() + 150_000);
    pass(now_ms() + 1500);
    assert_eq!(control.only("k").owner, "a");
}

#[test]
fn where_the_loss_is_not_notified_the_lock_ends_all_the_same() {
    let options = [
        "--rlock.watchdog-max",
        "1000",
        "--rlock.watchdog-lost",
        "keep",
    ];
    let server = Server::start_with(&options);
    let mut control = server.raw();
    let asked = now_ms();
    let mut held = Bound::with(&server, "k a 200");
    control.goes_free("k");
    assert!(now_ms() >= asked + 1000);
    held.client.in_step();
    assert_eq!(held.client.code("RLOCK.RELEASE k a"), "NOTHELD");
}

#[test]
fn a_bound_reader_ends_alone() {
    let server = Server::start_with(&["--rlock.watchdog-max", "1000"]);
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k other 100000 READ");
    let mut held = Bound::with(&server, "k a 300 READ");
    control.goes_to("k", "other read 1");
    assert!(held.client.is_closed());
}
