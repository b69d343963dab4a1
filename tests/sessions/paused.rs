//! CLIENT PAUSE: nothing is granted while writes are paused, and times end all the same.

use redis::Value;

use crate::support::{both_ways, now_ms, pass, Ask, Server, Session, Way};

/// Pauses all writes until it is ended.
#[track_caller]
fn pause(server: &Server) {
    server.raw().ok("CLIENT PAUSE 60000 WRITE");
}

both_ways!(a_lock_that_comes_free_in_a_pause_is_granted_after_it);
fn a_lock_that_comes_free_in_a_pause_is_granted_after_it(by: Way) {
    let server = Server::start();
    for what in ["WRITE", "ALL"] {
        println!("{what}");
        let mut control = server.raw();
        control.take("k", "x");
        let mut waiter = by.wait(&server, "k", "a");
        let begin = now_ms();
        // In one write: the lease is running.
        let pause = format!("CLIENT PAUSE 600 {what}");
        control.succeed(&["RLOCK.RENEW k x 150", &pause]);
        waiter.token();
        assert!(now_ms() >= begin + 590, "{what}");
        control.release("k", "a");
    }
}

both_ways!(a_time_ends_in_a_pause);
fn a_time_ends_in_a_pause(by: Way) {
    let server = Server::start();
    for what in ["WRITE", "ALL"] {
        let mut control = server.raw();
        control.take("k", "x");
        let mut waiter = by.with(&server, "k a 1000 BLOCK 150");
        let begin = now_ms();
        control.ok(&format!("CLIENT PAUSE 3000 {what}"));
        assert_eq!(waiter.end(), Value::Nil, "{what}");
        assert!(now_ms() < begin + 2900, "{what}: only after the pause");
        pass(begin + 3000);
        control.release("k", "x");
    }
}

both_ways!(a_cancel_works_while_writes_are_paused);
fn a_cancel_works_while_writes_are_paused(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut gone = by.wait(&server, "k", "a");
    let mut next = by.wait(&server, "k", "b");
    pause(&server);
    assert_eq!(control.int("RLOCK.CANCEL k a"), 1);
    assert_eq!(gone.end(), Value::Nil);
    assert_eq!(control.waiters("k"), 1);
    control.ok("CLIENT UNPAUSE");
    control.release("k", "x");
    next.token();
}

both_ways!(what_a_cancel_lets_in_comes_after_the_pause);
fn what_a_cancel_lets_in_comes_after_the_pause(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("y", "h");
    let mut many = by.many(&server, "x y", "a");
    let mut behind = by.wait(&server, "x", "b");
    pause(&server);
    assert_eq!(control.int("RLOCK.CANCEL x a"), 1);
    assert_eq!(many.end(), Value::Nil);
    // Free, but not to be written.
    behind.still_waits();
    assert_eq!(control.int("EXISTS x"), 0);
    control.ok("CLIENT UNPAUSE");
    behind.token();
}

both_ways!(a_cancel_waits_while_all_is_paused);
fn a_cancel_waits_while_all_is_paused(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut waiter = by.wait(&server, "k", "a");
    let begin = now_ms();
    control.ok("CLIENT PAUSE 500 ALL");
    assert_eq!(control.int("RLOCK.CANCEL k a"), 1);
    assert!(now_ms() >= begin + 490, "as any request");
    assert_eq!(waiter.end(), Value::Nil);
}

#[test]
fn a_hold_that_runs_out_in_a_pause_is_notified() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    session.ask("RLOCK.ACQUIRE plain a 200", "p");
    session.ask("RLOCK.ACQUIRE watched a 200 WATCHDOG", "w");
    pause(&server);
    let mut told = [session.next(), session.next()];
    told.sort();
    assert_eq!(told, ["lost p expired", "lost w expired"]);
    control.ok("CLIENT UNPAUSE");
    session.is_quiet();
}
