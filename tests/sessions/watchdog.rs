//! NOTIFY with WATCHDOG: the loss of one hold leaves the connection and the others, and
//! the end of the connection ends all of them.

use super::{in_exec, in_one_turn, replied};
use crate::support::{Ask, Server, Session, Waiter, Way, LONG};

#[test]
fn a_loss_leaves_the_other_holds_and_the_connection() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    for key in ["x", "y", "z"] {
        session.hold(key, "a", "WATCHDOG", key);
    }
    assert_eq!(control.int("RLOCK.FORCE y"), 1);
    assert_eq!(session.next(), "lost y forced");
    session.is_quiet();
    for key in ["x", "z"] {
        assert_eq!(control.watchdog(key), Some(session.id), "{key}");
    }
    assert_eq!(control.counter("rlock_watchdog_holds"), 2);
    session.client.close();
    control.goes_free("x");
    control.goes_free("z");
}

#[test]
fn without_notify_a_loss_closes_the_connection_as_ever() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    session.hold("x", "a", "WATCHDOG", "x");
    session
        .client
        .token(&format!("RLOCK.ACQUIRE y a {LONG} WATCHDOG"));
    control.int("RLOCK.FORCE y");
    assert!(session.client.is_closed());
    control.goes_free("x");
}

#[test]
fn who_does_not_listen_any_more_is_closed_when_it_loses_a_lock() {
    let server = Server::start();
    let mut control = server.raw();
    for leave in [
        "UNSUBSCRIBE CH",
        "UNSUBSCRIBE",
        "UNSUBSCRIBE CH; SUBSCRIBE other",
    ] {
        println!("{leave}");
        let mut session = Session::new(&server);
        session.hold("k", "a", "WATCHDOG", "t");
        for line in leave.split(';') {
            session.client.send(&line.replace("CH", &session.channel));
        }
        session.client.in_step();
        control.int("RLOCK.FORCE k");
        assert!(session.client.is_closed(), "{leave}");
    }
    // With a plain lease nothing closes it.
    let mut session = Session::new(&server);
    session.hold("k", "a", "", "t");
    session.client.send("UNSUBSCRIBE");
    session.client.in_step();
    control.int("RLOCK.FORCE k");
    control.is_free("k");
    session.is_quiet();
}

#[test]
fn who_stops_listening_in_the_very_turn_of_its_loss_is_notified_or_closed() {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..10 {
        let mut session = Session::new(&server);
        session.hold("k", "a", "WATCHDOG", "t");
        let force = match round % 2 {
            0 => "RLOCK.FORCE k",
            _ => in_exec(&mut control, "RLOCK.FORCE k"),
        };
        in_one_turn(
            &server,
            &mut [(&mut control, force), (&mut session.client, "UNSUBSCRIBE")],
        );
        assert_eq!(replied(&mut control), redis::Value::Int(1));
        if !session.client.is_closed_within(100) {
            assert_eq!(session.next(), "lost t forced");
        }
    }
}

#[test]
fn a_lock_that_is_granted_after_a_wait_is_kept_until_the_connection_closes() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    session.queue_by("RLOCK.ACQUIRE k a 300 WATCHDOG", "t");
    control.release("k", "x");
    let token = session.granted("t");
    crate::support::pass(crate::support::now_ms() + 700);
    assert_eq!(control.known_token("k", "a", "exclusive"), Some(token));
    session.is_quiet();
    let mut next = Waiter::new(&server, "k", "b");
    session.client.close();
    next.token();
}

#[test]
fn a_wait_that_is_over_lets_nobody_hold_on() {
    // Given up before the grant: nothing is held for ever, though WATCHDOG was asked for.
    let server = Server::start();
    let mut control = server.raw();
    for by in Way::ALL {
        control.take("k", "x");
        let mut gone = by.with(&server, "k a 100000 WATCHDOG BLOCK 0");
        assert_eq!(control.int(&gone.cancel), 1);
        assert_eq!(gone.end(), redis::Value::Nil);
        control.release("k", "x");
        control.is_free("k");
        gone.client.in_step();
    }
}
