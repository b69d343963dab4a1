//! MACQUIRE … WATCHDOG: all of the keys end with the connection, and each for itself.

use redis::Value;

use crate::support::ask::{list, map, Ask};
use crate::support::locks::{has_waiters, now_ms, pass, Say, Waiter};
use crate::support::look::{counter, goes_free, held_by, only, waits, watchdog, Bound};
use crate::support::{eventually, Server};

#[test]
fn all_keys_are_renewed_and_end_with_the_connection() {
    let server = Server::start();
    let mut control = server.raw();
    let held = Bound::by(&server, "RLOCK.MACQUIRE 3 a b c m 400 WATCHDOG");
    let mut waiters: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|key| Waiter::new(&server, key, "next"))
        .collect();
    pass(now_ms() + 2000);
    for key in ["a", "b", "c"] {
        let hold = only(&mut control, key);
        assert_eq!(hold.token, Some(held.token), "{key}");
        assert_eq!(hold.watchdog, Some(held.id), "{key}");
    }
    assert_eq!(counter(&mut control, "rlock_watchdog_holds"), 3);
    held.client.close();
    for waiter in &mut waiters {
        assert!(waiter.token() > held.token);
    }
    goes_free(&mut control, "c");
}

#[test]
fn a_request_that_waited_is_bound_from_its_grant_on() {
    let server = Server::start();
    let mut control = server.raw();
    control.say("RLOCK.ACQUIRE b z 100000");
    let mut waiter = waits(&server, "RLOCK.MACQUIRE 2 a b m 400 BLOCK 0 WATCHDOG");
    has_waiters(&mut control, "a", 1);
    assert_eq!(counter(&mut control, "rlock_watchdog_holds"), 0);
    assert_eq!(control.say("RLOCK.RELEASE b z"), Value::Int(0));
    let granted = waiter.token();
    pass(now_ms() + 1500);
    for key in ["a", "b"] {
        let hold = only(&mut control, key);
        assert_eq!(
            (hold.token, hold.watchdog),
            (Some(granted), Some(waiter.id))
        );
    }
    waiter.client.close();
    goes_free(&mut control, "a");
    goes_free(&mut control, "b");
}

#[test]
fn a_connection_that_closes_while_it_waits_frees_what_it_reserved() {
    let server = Server::start();
    let mut control = server.raw();
    control.say("RLOCK.ACQUIRE b z 100000");
    let dies = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0 WATCHDOG");
    assert!(control.refused("RLOCK.ACQUIRE a y 1000"), "it is reserved");
    let mut behind = Waiter::new(&server, "a", "y");
    dies.client.close();
    behind.token();
    has_waiters(&mut control, "b", 0);
}

#[test]
fn each_of_them_ends_for_itself() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::by(&server, "RLOCK.MACQUIRE 3 a b c m 100000 WATCHDOG");
    assert_eq!(held.client.say("RLOCK.RELEASE a m"), Value::Int(0));
    assert_eq!(held.client.say("RLOCK.MRELEASE 1 b m"), Value::Int(1));
    held.is_open();
    assert_eq!(counter(&mut control, "rlock_watchdog_holds"), 1);
    // One that is lost closes the connection all the same, and all end.
    let mut other = Bound::by(&server, "RLOCK.MACQUIRE 2 a b n 100000 WATCHDOG");
    assert_eq!(control.say("DEL a"), Value::Int(1));
    assert!(other.is_closed());
    goes_free(&mut control, "b");
    assert_eq!(watchdog(&mut control, "c"), Some(held.id));
    held.is_open();
}

#[test]
fn keys_that_were_held_before_keep_the_hold_that_was_plain() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    client.say("RLOCK.ACQUIRE a m 100000");
    client.say("RLOCK.MACQUIRE 2 a b m 100000 WATCHDOG");
    assert_eq!(held_by(&mut control, "a"), "m exclusive 2");
    client.close();
    goes_free(&mut control, "b");
    eventually("the hold that was watched is gone", || {
        held_by(&mut control, "a") == "m exclusive 1"
    });
    assert_eq!(watchdog(&mut control, "a"), None);
}

#[test]
fn a_renewal_of_many_sets_the_watchdogs_lease_of_each() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::by(&server, "RLOCK.MACQUIRE 2 a b m 100000 WATCHDOG");
    let renewed = held.client.say("RLOCK.MRENEW 2 a b m 500");
    assert_eq!(renewed, Value::Int(1));
    pass(now_ms() + 2500);
    for key in ["a", "b"] {
        let hold = only(&mut control, key);
        assert_eq!(hold.token, Some(held.token), "{key}");
        assert!(hold.remaining_ms <= Some(500), "{key}: {hold:?}");
    }
    let told = list(map(control.ask("RLOCK.INFO a"))["holders"].clone());
    assert_eq!(told.len(), 1);
}
