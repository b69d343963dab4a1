//! The server renews the lease of a watchdog hold, every third of it, for as long
//! as the connection is open.

use std::time::Instant;

use redis::Value;

use crate::support::{
    eventually, int, longest, now_ms, pass, token, Ask, Bound, Listener, Server, Waiter, LONG,
};

#[test]
fn a_short_lease_is_held_through_a_long_silence() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 1200");
    pass(now_ms() + 5000);
    let hold = control.only("k");
    assert_eq!((hold.owner.as_str(), hold.holds), ("a", 1));
    assert_eq!(hold.token, Some(held.token));
    assert_eq!(hold.watchdog, Some(held.id));
    assert!(hold.remaining_ms <= Some(longest(1200)), "{hold:?}");
    assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
    held.client.in_step();
}

#[test]
fn nobody_else_gets_a_lock_that_is_watched() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 3000");
    let mut waiter = Waiter::new(&server, "k", "b");
    let begin = now_ms();
    // Tries all the time, through more than two leases.
    while now_ms() < begin + 7000 {
        let tries = control.ask_all(&["RLOCK.ACQUIRE k c 1000"; 20]);
        assert!(tries.iter().all(|reply| *reply == Value::Nil), "{tries:?}");
    }
    assert_eq!(control.watchdog("k"), Some(held.id));
    control.has_waiters("k", 1);
    assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
    waiter.token();
    held.client.in_step();
}

#[test]
fn it_is_renewed_every_third_of_its_lease_and_not_more_often() {
    let server = Server::start();
    let mut events = Listener::keyspace(&server, 0);
    let held = Bound::with(&server, "k a 900");
    let begin = Instant::now();
    pass(now_ms() + 3000);
    let told = events.events();
    let most = begin.elapsed().as_millis() as usize / 300 + 2;
    let count = |name: &str| {
        let event = (name.to_owned(), "k".to_owned());
        told.iter().filter(|heard| **heard == event).count()
    };
    // The first is that of the acquisition.
    let renewals = count("expire").saturating_sub(1);
    assert!(
        (2..=most).contains(&renewals),
        "{renewals} of at most {most}"
    );
    assert_eq!(count("rlock.renewed"), 0, "that is for RENEW");
    assert_eq!(count("rlock.acquired"), 1);
    drop(held);
}

#[test]
fn a_released_hold_is_renewed_no_more() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
    control.goes_free("k");
    // The same owner, connection and name: this one is not bound.
    let replies = held
        .client
        .ask_all(&["RLOCK.ACQUIRE k a 700", "PEXPIRETIME k"]);
    token(replies[0].clone());
    let ends = int(replies[1].clone());
    assert!(control.only("k").watchdog.is_none());
    let mut next = Waiter::new(&server, "k", "b");
    next.token();
    assert!(now_ms() >= ends);
    held.client.in_step();
}

#[test]
fn a_nested_watchdog_renews_until_it_is_released() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    let granted = client.token("RLOCK.ACQUIRE k a 2000");
    assert_eq!(client.int("RLOCK.ACQUIRE k a 1000 WATCHDOG"), granted);
    let id = client.client_id();
    assert_eq!(control.watchdog("k"), Some(id));
    // Longer than either lease.
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!((hold.holds, hold.token), (2, Some(granted)));
    // The newest hold of this connection is the watched one.
    assert_eq!(client.int("RLOCK.RELEASE k a"), 1);
    let left = control.only("k");
    assert_eq!((left.holds, left.watchdog), (1, None));
    // The outer one is left with a lease that nobody renews.
    control.goes_free("k");
}

#[test]
fn a_nested_watchdog_leaves_a_longer_lease_as_it_is() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 100000");
    let ends = control.ends("k");
    client.token("RLOCK.ACQUIRE k a 300 WATCHDOG");
    assert_eq!(control.ends("k"), ends);
    pass(now_ms() + 1000);
    assert_eq!(control.ends("k"), ends, "renewed to less");
    assert_eq!(client.int("RLOCK.RELEASE k a"), 1);
    assert_eq!(control.ends("k"), ends);
}

#[test]
fn an_inner_plain_hold_leaves_the_outer_one_watched() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 1200");
    held.client.ask("RLOCK.ACQUIRE k a 1200");
    assert_eq!(control.watchdog("k"), Some(held.id));
    assert_eq!(held.client.int("RLOCK.RELEASE k a"), 1);
    assert_eq!(control.watchdog("k"), Some(held.id));
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!((hold.holds, hold.token), (1, Some(held.token)));
    assert_eq!(hold.watchdog, Some(held.id));
    held.client.close();
    control.goes_free("k");
}

#[test]
fn a_renewal_by_hand_makes_its_lease_that_of_the_watchdog() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::new(&server, "k", "a");
    assert!(control.ends("k") > now_ms() + LONG / 2);
    // A third of the old lease would be half a minute.
    assert_eq!(held.client.int("RLOCK.RENEW k a 1200"), 1);
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!(
        (hold.token, hold.watchdog),
        (Some(held.token), Some(held.id))
    );
    assert!(hold.remaining_ms <= Some(longest(1200)), "{hold:?}");

    // And back: the next renewal is far away.
    assert_eq!(held.client.int("RLOCK.RENEW k a 100000"), 1);
    let ends = control.ends("k");
    pass(now_ms() + 1500);
    assert_eq!(control.ends("k"), ends, "renewed before its time");
    assert_eq!(control.watchdog("k"), Some(held.id));
    held.client.close();
    control.goes_free("k");
}

#[test]
fn a_renewal_from_another_connection_counts_too() {
    let server = Server::start();
    let mut control = server.raw();
    let held = Bound::new(&server, "k", "a");
    assert_eq!(control.int("RLOCK.RENEW k a 1200"), 1);
    // Not said WATCHDOG: the hold is bound to whom it was.
    assert_eq!(control.watchdog("k"), Some(held.id));
    pass(now_ms() + 4000);
    assert_eq!(control.only("k").token, Some(held.token));
    held.client.close();
    control.goes_free("k");
}

#[test]
fn two_watchdogs_of_one_owner_keep_the_lock_until_the_last_is_gone() {
    let server = Server::start();
    let mut control = server.raw();
    let one = Bound::with(&server, "k a 1200");
    let two = Bound::with(&server, "k a 1500");
    assert_eq!(one.token, two.token);
    control.goes_to("k", "a exclusive 2");
    one.client.close();
    eventually("one hold is left", || {
        control.held_by("k") == "a exclusive 1"
    });
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!((hold.token, hold.watchdog), (Some(two.token), Some(two.id)));
    two.client.close();
    control.goes_free("k");
}

#[test]
fn a_lock_without_a_lease_by_hand_still_ends_with_its_connection() {
    let server = Server::start();
    let mut control = server.raw();
    let held = Bound::with(&server, "k a 300");
    assert_eq!(control.int("PERSIST k"), 1);
    pass(now_ms() + 1000);
    assert_eq!(control.only("k").token, Some(held.token));
    held.client.close();
    control.goes_free("k");
}

#[test]
fn a_renewal_comes_a_third_of_the_lease_after_the_last_one() {
    const LEASE: i64 = 3000;
    let server = Server::start();
    let mut control = server.raw();
    let _held = Bound::with(&server, &format!("k a {LEASE}"));
    let mut ends = vec![control.ends("k")];
    eventually("it is renewed five times", || {
        ends.push(control.ends("k"));
        ends.dedup();
        ends.len() > 5
    });
    let apart: Vec<_> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (third, half) = (LEASE / 3, LEASE / 2);
    assert!(apart.iter().all(|ms| *ms >= third - 1), "{apart:?}");
    // A machine that is busy makes some of them late. The first counts from the grant.
    assert!(apart[1..].iter().any(|ms| *ms < half), "{apart:?}");
}
