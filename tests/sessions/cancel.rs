//! RLOCK.CANCEL: ends the waits of an owner for a key, from whichever connection.

use redis::Value;

use crate::support::{
    both_ways, each, pair, queued, user, Ask, Server, Session, Waiter, Way, LONG,
};

both_ways!(it_ends_a_wait_as_its_time_would);
fn it_ends_a_wait_as_its_time_would(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut gone = by.wait(&server, "k", "a");
    let mut next = by.wait(&server, "k", "b");
    assert_eq!(control.int("RLOCK.CANCEL k a"), 1);
    assert_eq!(gone.end(), Value::Nil);
    gone.client.in_step();
    assert_eq!(control.waiters("k"), 1);
    assert_eq!(control.counter("rlock_cancelled"), 1);
    assert_eq!(control.counter("rlock_timed_out"), 0);
    // Nothing of it is left to cancel.
    assert_eq!(control.int("RLOCK.CANCEL k a"), 0);
    assert_eq!(
        control.int("RLOCK.CANCEL k x"),
        0,
        "it holds, and does not wait"
    );
    assert_eq!(control.int("RLOCK.CANCEL nobody a"), 0);
    control.release("k", "x");
    next.token();
    assert_eq!(gone.client.heard(), None);
}

both_ways!(it_ends_those_of_the_mode_that_is_named_or_all);
fn it_ends_those_of_the_mode_that_is_named_or_all(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for (words, ended) in [("READ", [0, 1, 0]), ("WRITE", [0, 0, 1]), ("", [1, 1, 1])] {
        control.ok("FLUSHALL");
        control.take("k", "x");
        let mut waits = [
            by.wait(&server, "k", "a"),
            by.read(&server, "k", "a"),
            by.write(&server, "k", "a"),
        ];
        let cancelled = control.int(&format!("RLOCK.CANCEL k a {words}"));
        assert_eq!(cancelled, ended.iter().sum::<i64>(), "{words}");
        for (waiter, ended) in waits.iter_mut().zip(ended) {
            match ended {
                0 => waiter.still_waits(),
                _ => assert_eq!(waiter.end(), Value::Nil, "{words}"),
            }
        }
        assert_eq!(control.waiters("k"), 3 - cancelled);
        let rest = control.int("RLOCK.CANCEL k a");
        assert_eq!(rest, 3 - cancelled);
    }
}

both_ways!(a_request_for_many_keys_ends_whole);
fn a_request_for_many_keys_ends_whole(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("y", "h");
    let mut many = by.many(&server, "x y z", "a");
    let mut on_x = by.wait(&server, "x", "b");
    let mut on_y = by.wait(&server, "y", "b");
    assert_eq!(control.int("RLOCK.CANCEL z a"), 1);
    assert_eq!(many.end(), Value::Nil);
    on_x.token();
    control.is_free("z");
    assert_eq!(control.waiters("y"), 1);
    control.release("y", "h");
    on_y.token();
}

#[test]
fn all_requests_of_an_owner_end_in_both_ways_on_all_its_connections() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t1");
    session.queue("k", "a", "t2");
    let mut blocked = Waiter::new(&server, "k", "a");
    let mut other = Waiter::new(&server, "k", "b");
    let mut elsewhere = server.raw();
    elsewhere.ok("SELECT 1");
    assert_eq!(elsewhere.int("RLOCK.CANCEL k a"), 0, "another database");
    assert_eq!(session.client.int("RLOCK.CANCEL k a"), 3);
    assert_eq!(
        [session.next(), session.next()],
        ["timeout t1", "timeout t2"]
    );
    assert_eq!(blocked.end(), Value::Nil);
    control.release("k", "x");
    other.token();
    session.is_quiet();
    // Their tags are free.
    session.queue("k", "a", "t1");
}

#[test]
fn the_owner_may_be_the_connection() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "*", "t");
    assert_eq!(control.int("RLOCK.CANCEL k *"), 0, "another connection");
    assert_eq!(session.client.int("RLOCK.CANCEL k *"), 1);
    assert_eq!(session.next(), "timeout t");
}

both_ways!(a_wait_that_is_called_off_is_no_part_of_a_ring);
fn a_wait_that_is_called_off_is_no_part_of_a_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("x", "a");
    control.take("y", "b");
    let mut a = by.wait(&server, "y", "a");
    let close = format!("RLOCK.ACQUIRE x b {LONG} BLOCK 0");
    assert_eq!(control.code(&close), "DEADLOCK");
    assert_eq!(control.int("RLOCK.CANCEL y a"), 1);
    assert_eq!(a.end(), Value::Nil);
    let mut b = by.wait(&server, "x", "b");
    control.release("x", "a");
    b.token();
    control.release("x", "b");

    // In one write, before and after the request that would close the ring.
    for cancel_first in [true, false] {
        control.take("x", "a");
        let mut a = by.wait(&server, "y", "a");
        let mut lines = [
            "RLOCK.CANCEL y a".to_owned(),
            close.replace("BLOCK 0", "BLOCK 1"),
        ];
        if !cancel_first {
            lines.reverse();
        }
        let replies = control.ask_all(&lines);
        assert_eq!(replies[usize::from(!cancel_first)], Value::Int(1));
        assert_eq!(a.end(), Value::Nil);
        match &replies[usize::from(cancel_first)] {
            Value::Nil => assert!(cancel_first),
            refused => assert_eq!(crate::support::code(refused), "DEADLOCK"),
        }
        control.release("x", "a");
    }
}

both_ways!(a_cancel_and_the_end_of_its_time_are_one_end);
fn a_cancel_and_the_end_of_its_time_are_one_end(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    for ms in 1..60 {
        let mut waiter = by.with(&server, &format!("k a 1000 BLOCK {}", ms % 6 + 1));
        let cancelled = control.int("RLOCK.CANCEL k a");
        assert!((0..=1).contains(&cancelled));
        assert_eq!(waiter.end(), Value::Nil);
        waiter.client.in_step();
        assert_eq!(waiter.client.heard(), None);
        assert_eq!(control.waiters("k"), 0);
    }
    let (cancelled, timed_out) = (
        control.counter("rlock_cancelled"),
        control.counter("rlock_timed_out"),
    );
    assert_eq!(cancelled + timed_out, 59);
}

#[test]
fn a_grant_that_was_decided_before_stands() {
    each(&Way::ALL, |by, server, client| {
        client.take("k", "x");
        let mut waiter = by.wait(server, "k", "a");
        let replies = client.succeed(&["RLOCK.RELEASE k x", "RLOCK.CANCEL k a"]);
        assert_eq!(replies, [Value::Int(0), Value::Int(0)]);
        waiter.token();
        client.release("k", "a");
        // And the other way round.
        client.take("k", "x");
        let mut waiter = by.wait(server, "k", "a");
        let replies = client.succeed(&["RLOCK.CANCEL k a", "RLOCK.RELEASE k x"]);
        assert_eq!(replies, [Value::Int(1), Value::Int(0)]);
        assert_eq!(waiter.end(), Value::Nil);
        client.is_free("k");
    });
}

#[test]
fn it_works_without_memory_and_without_replicas() {
    each(&Way::ALL, |by, server, client| {
        client.take("k", "x");
        let mut waiter = by.wait(server, "k", "a");
        client.ok("CONFIG SET maxmemory-policy noeviction");
        client.ok("CONFIG SET maxmemory 1");
        assert_eq!(client.code("RLOCK.ACQUIRE k b 1000"), "OOM");
        assert_eq!(client.int("RLOCK.CANCEL k a"), 1);
        assert_eq!(waiter.end(), Value::Nil);
        client.ok("CONFIG SET maxmemory 0");
        let mut waiter = by.wait(server, "k", "a");
        client.ok("CONFIG SET min-replicas-to-write 1");
        assert_eq!(client.code("RLOCK.ACQUIRE k b 1000"), "NOREPLICAS");
        assert_eq!(client.int("RLOCK.CANCEL k a"), 1);
        assert_eq!(waiter.end(), Value::Nil);
        client.ok("CONFIG SET min-replicas-to-write 0");
    });
}

#[test]
fn on_a_replica_nobody_waits() {
    let (server, replica) = pair(&[]);
    let mut control = server.raw();
    control.take("k", "x");
    let mut waiter = Waiter::new(&server, "k", "a");
    assert_eq!(replica.raw().int("RLOCK.CANCEL k a"), 0);
    waiter.still_waits();
}

#[test]
fn it_takes_the_permission_to_write_the_key() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t");
    for rules in ["+@all -rlock.cancel ~*", "+@all ~other", "+@all %R~k"] {
        let mut worker = user(&server, rules);
        assert!(worker.denied("RLOCK.CANCEL k a"), "{rules}");
    }
    session.is_quiet();
    let mut worker = user(&server, "+rlock.cancel ~k");
    assert_eq!(worker.int("RLOCK.CANCEL k a"), 1);
    assert_eq!(session.next(), "timeout t");
}

#[test]
fn what_it_does_not_know_is_refused() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t");
    let usage = "usage: RLOCK.CANCEL key owner [READ|WRITE|PERMITS]";
    for request in [
        "RLOCK.CANCEL",
        "RLOCK.CANCEL k",
        "RLOCK.CANCEL k a READ WRITE",
        "RLOCK.CANCEL k a ALL",
        "RLOCK.CANCEL k a t",
    ] {
        let line = control.error(request);
        assert!(line.starts_with("ERR "), "{request}: {line}");
        assert!(line.ends_with(usage), "{request}: {line}");
    }
    session.is_quiet();
}

#[test]
fn within_a_transaction_and_a_script_it_ends_waits_too() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t1");
    let replies = control.ask_all(&["MULTI", "RLOCK.CANCEL k a", "EXEC"]);
    assert_eq!(replies[2], Value::Array(vec![Value::Int(1)]));
    assert_eq!(session.next(), "timeout t1");
    session.queue("k", "a", "t2");
    let script = "return redis.call('RLOCK.CANCEL', KEYS[1], 'a')";
    assert_eq!(control.int(&["EVAL", script, "1", "k"]), 1);
    assert_eq!(session.next(), "timeout t2");
    assert_eq!(
        session.ask("RLOCK.ACQUIRE k a 1000 QUEUE 1", "t1"),
        queued()
    );
}
