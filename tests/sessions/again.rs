//! A request that is retried with ONCE: the same request while it waits keeps its
//! place, whichever connection sends it and in whichever way it waits.

use redis::Value;

use super::in_one_turn;
use crate::support::{error, int, Ask, Server, Session, Waiter, LONG};

const SUPERSEDED: &str = "SUPERSEDED a newer request of the same owner took the place";

fn once(key: &str, owner: &str) -> String {
    format!("RLOCK.ACQUIRE {key} {owner} {LONG} ONCE")
}

#[test]
fn the_very_same_request_while_it_waits_and_after_its_grant() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue_by(&once("k", "a"), "t");
    let mut behind = Waiter::new(&server, "k", "b");
    for _ in 0..3 {
        session.queue_by(&once("k", "a"), "t");
    }
    assert_eq!(control.waiters("k"), 2);
    session.is_quiet();
    control.release("k", "x");
    let token = session.granted("t");
    // As a library sends it that missed the message.
    for _ in 0..3 {
        let reply = session.ask(&format!("{} QUEUE 0", once("k", "a")), "t");
        assert_eq!(reply, Value::Int(token));
    }
    assert_eq!(control.hash("k"), "a=1");
    session.is_quiet();
    session.client.release("k", "a");
    behind.token();
    // Its tag is free.
    session.hold("other", "a", "", "t");
}

#[test]
fn from_another_connection_it_has_the_place_and_the_older_one_is_notified() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut ahead = Waiter::new(&server, "k", "first");
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    old.queue_by(&once("k", "a"), "t1");
    let mut behind = Waiter::new(&server, "k", "b");
    new.queue_by(&once("k", "a"), "t2");
    assert_eq!(old.next(), format!("error t1 {SUPERSEDED}"));
    assert_eq!(control.waiters("k"), 3);
    // The end of the older connection is nothing to the new request.
    old.client.close();
    control.release("k", "x");
    ahead.token();
    control.release("k", "first");
    new.granted("t2");
    new.client.release("k", "a");
    behind.token();
    new.is_quiet();
}

#[test]
fn a_client_that_reconnects_and_retries_all_is_notified_of_nothing_but_the_grant() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    new.channel.clone_from(&old.channel);
    new.subscribe();
    old.queue_by(&once("k", "a"), "t");
    let mut behind = Waiter::new(&server, "k", "b");
    new.queue_by(&once("k", "a"), "t");
    old.is_quiet();
    new.is_quiet();
    old.client.close();
    assert_eq!(control.waiters("k"), 2);
    control.release("k", "x");
    let token = new.granted("t");
    // And once more after the grant.
    let mut third = Session::new(&server);
    third.channel.clone_from(&new.channel);
    third.subscribe();
    let again = third.ask(&format!("{} QUEUE 0", once("k", "a")), "t");
    assert_eq!(again, Value::Int(token));
    new.client.close();
    third.client.release("k", "a");
    behind.token();
}

#[test]
fn with_another_tag_on_its_own_connection_the_older_one_is_notified() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue_by(&once("k", "a"), "t1");
    session.queue_by(&once("k", "a"), "t2");
    assert_eq!(session.next(), format!("error t1 {SUPERSEDED}"));
    // t1 is free for another, t2 is not.
    session.queue("k", "b", "t1");
    let in_use = session.ask("RLOCK.ACQUIRE k c 1000 QUEUE 0", "t2");
    assert!(error(in_use).contains("the tag"));
    control.release("k", "x");
    session.granted("t2");
}

#[test]
fn a_blocked_request_and_a_queued_one_take_each_others_place() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let block = format!("{} BLOCK 0", once("k", "a"));
    let mut first = Waiter::by(&server, &block);
    let mut behind = Waiter::new(&server, "k", "b");
    let mut session = Session::new(&server);
    session.queue_by(&once("k", "a"), "t");
    assert_eq!(error(first.end()), SUPERSEDED);
    first.client.in_step();
    let mut back = Waiter::by(&server, &block);
    assert_eq!(session.next(), format!("error t {SUPERSEDED}"));
    let mut again = Waiter::by(&server, &block);
    assert_eq!(error(back.end()), SUPERSEDED);
    assert_eq!(control.waiters("k"), 2);
    control.release("k", "x");
    again.token();
    control.release("k", "a");
    behind.token();
    session.is_quiet();
}

#[test]
fn it_has_the_time_and_the_lease_that_the_newer_one_says() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.ask("RLOCK.ACQUIRE k a 100000 ONCE QUEUE 60000", "t");
    session.ask("RLOCK.ACQUIRE k a 100000 ONCE QUEUE 30", "t");
    assert_eq!(session.next(), "timeout t");
    assert_eq!(control.waiters("k"), 0);
    // And the other way round.
    let notify = session.notify("t");
    let lines = ["100000 ONCE QUEUE 300", "500000 ONCE QUEUE 0"];
    let lines = lines.map(|words| format!("RLOCK.ACQUIRE k a {words} {notify}"));
    session.client.succeed(&lines);
    crate::support::pass(crate::support::now_ms() + 400);
    session.is_quiet();
    control.release("k", "x");
    session.granted("t");
    assert!(control.only("k").remaining_ms > Some(400_000));
}

#[test]
fn for_other_keys_or_in_another_mode_it_waits_at_the_tail() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let many = |keys: &str| format!("RLOCK.MACQUIRE 2 {keys} a {LONG} ONCE");
    control.take("x", "h");
    session.queue_by(&many("x y"), "xy");
    let mut between = Waiter::new(&server, "x", "b");
    session.queue_by(&many("x z"), "xz");
    session.queue_by(&once("x", "a"), "x");
    session.queue_by(&format!("{} READ", once("x", "c")), "read");
    session.queue_by(&format!("{} WRITE", once("x", "c")), "write");
    assert_eq!(control.waiters("x"), 6);
    session.is_quiet();
    control.release("x", "h");
    let token = session.granted("xy");
    // The owner has x: its other requests have it too, without a hold more.
    session.granted("xz");
    assert_eq!(session.granted("x"), token);
    assert_eq!(control.hash("x"), "a=1");
    control.int("RLOCK.MRELEASE 3 x y z a");
    between.token();
}

#[test]
fn a_request_for_many_keys_is_taken_over_whatever_their_order() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("y", "h");
    let (mut old, mut new) = (Session::new(&server), Session::new(&server));
    old.queue_by(&format!("RLOCK.MACQUIRE 3 x y z a {LONG} ONCE"), "t1");
    let mut behind = Waiter::by(&server, &format!("RLOCK.MACQUIRE 2 z y b {LONG} BLOCK 0"));
    new.queue_by(&format!("RLOCK.MACQUIRE 3 z x y a {LONG} ONCE"), "t2");
    assert_eq!(old.next(), format!("error t1 {SUPERSEDED}"));
    for (key, waiters) in [("x", 1), ("y", 2), ("z", 2)] {
        assert_eq!(control.waiters(key), waiters, "{key}");
    }
    control.is_reserved("x");
    control.release("y", "h");
    let token = new.granted("t2");
    let again = new.ask(
        &format!("RLOCK.MACQUIRE 3 y z x a {LONG} ONCE QUEUE 0"),
        "t2",
    );
    assert_eq!(again, Value::Int(token));
    assert_eq!(control.int("RLOCK.MRELEASE 3 x y z a"), 3);
    behind.token();
    old.is_quiet();
}

#[test]
fn without_once_both_requests_wait() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue_by(&once("k", "a"), "t1");
    session.queue("k", "a", "t2");
    assert_eq!(control.waiters("k"), 2);
    control.release("k", "x");
    let token = session.granted("t1");
    assert_eq!(session.granted("t2"), token);
    assert_eq!(control.hash("k"), "a=2");
}

#[test]
fn a_star_keeps_its_place_to_itself() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "*", "t1");
    session.queue_by(&once("k", "*"), "t2");
    assert_eq!(control.waiters("k"), 2, "two tasks on one connection");
    control.release("k", "x");
    session.granted("t1");
    let told = session.next();
    assert!(told.starts_with("error t2 HELD owner "), "{told}");
}

#[test]
fn from_two_connections_at_the_same_moment_both_have_the_one_hold() {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..5 {
        let (mut one, mut two) = (server.raw(), server.raw());
        let line = once("k", "job");
        in_one_turn(&server, &mut [(&mut one, &line), (&mut two, &line)]);
        let token = int(one.read());
        assert_eq!(int(two.read()), token, "round {round}");
        assert_eq!(control.hash("k"), "job=1");
        control.release("k", "job");
    }
}

#[test]
fn a_ring_is_looked_for_again() {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    control.take("x", "a");
    control.take("y", "b");
    let mut session = Session::new(&server);
    session.queue_by(&once("y", "a"), "a1");
    session.queue_by(&once("x", "b"), "b1");
    control.ok("CONFIG SET rlock.deadlock-detection yes");
    // Now that somebody looks: it is refused, and the other request of the ring stays.
    let again = session.ask(&format!("{} QUEUE 0", once("x", "b")), "b1");
    let line = error(again);
    assert!(line.starts_with("DEADLOCK "), "{line}");
    assert_eq!(control.waiters("x"), 0);
    session.is_quiet();
    control.release("y", "b");
    session.granted("a1");
}
