//! MACQUIRE … WATCHDOG: all of the keys end with the connection, and each for itself.

use crate::support::{eventually, longest, now_ms, pass, Ask, Bound, Server, Waiter};

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
        let hold = control.only(key);
        assert_eq!(hold.token, Some(held.token), "{key}");
        assert_eq!(hold.watchdog, Some(held.id), "{key}");
    }
    assert_eq!(control.counter("rlock_watchdog_holds"), 3);
    held.client.close();
    for waiter in &mut waiters {
        assert!(waiter.token() > held.token);
    }
    control.goes_free("c");
}

#[test]
fn a_request_that_waited_is_bound_from_its_grant_on() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE b z 100000");
    let mut waiter = Waiter::by(&server, "RLOCK.MACQUIRE 2 a b m 400 BLOCK 0 WATCHDOG");
    control.has_waiters("a", 1);
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
    assert_eq!(control.int("RLOCK.RELEASE b z"), 0);
    let granted = waiter.token();
    pass(now_ms() + 1500);
    for key in ["a", "b"] {
        let hold = control.only(key);
        assert_eq!(
            (hold.token, hold.watchdog),
            (Some(granted), Some(waiter.id))
        );
    }
    waiter.client.close();
    control.goes_free("a");
    control.goes_free("b");
}

#[test]
fn a_connection_that_closes_while_it_waits_frees_what_it_reserved() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE b z 100000");
    let dies = Waiter::by(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0 WATCHDOG");
    assert!(control.refused("RLOCK.ACQUIRE a y 1000"), "it is reserved");
    let mut behind = Waiter::new(&server, "a", "y");
    dies.client.close();
    behind.token();
    control.has_waiters("b", 0);
}

#[test]
fn each_of_them_ends_for_itself() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::by(&server, "RLOCK.MACQUIRE 3 a b c m 100000 WATCHDOG");
    assert_eq!(held.client.int("RLOCK.RELEASE a m"), 0);
    assert_eq!(held.client.int("RLOCK.MRELEASE 1 b m"), 1);
    held.client.in_step();
    assert_eq!(control.counter("rlock_watchdog_holds"), 1);
    // One that is lost closes the connection all the same, and all end.
    let mut other = Bound::by(&server, "RLOCK.MACQUIRE 2 a b n 100000 WATCHDOG");
    assert_eq!(control.int("DEL a"), 1);
    assert!(other.client.is_closed());
    control.goes_free("b");
    assert_eq!(control.watchdog("c"), Some(held.id));
    held.client.in_step();
}

#[test]
fn keys_that_were_held_before_keep_the_hold_that_was_plain() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    client.ask("RLOCK.ACQUIRE a m 100000");
    client.ask("RLOCK.MACQUIRE 2 a b m 100000 WATCHDOG");
    assert_eq!(control.held_by("a"), "m exclusive 2");
    client.close();
    control.goes_free("b");
    eventually("the hold that was watched is gone", || {
        control.held_by("a") == "m exclusive 1"
    });
    assert_eq!(control.watchdog("a"), None);
}

#[test]
fn a_renewal_of_many_sets_the_watchdogs_lease_of_each() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::by(&server, "RLOCK.MACQUIRE 2 a b m 100000 WATCHDOG");
    assert_eq!(held.client.int("RLOCK.MRENEW 2 a b m 500"), 1);
    pass(now_ms() + 2500);
    for key in ["a", "b"] {
        let hold = control.only(key);
        assert_eq!(hold.token, Some(held.token), "{key}");
        assert!(hold.remaining_ms <= Some(longest(500)), "{key}: {hold:?}");
    }
    assert_eq!(control.info("a").holders.len(), 1);
}
