//! Where a ring goes through the order of a queue, the request that would close it
//! is let past those who wait for its owner; and what is no ring at all.

use redis::Value;

use super::{block, ring};
use crate::support::{both_ways, eventually, poll, pong, Ask, Server, Way, BOUND};

both_ways!(a_key_reserved_for_somebody_who_waits_for_me_is_mine);
fn a_key_reserved_for_somebody_who_waits_for_me_is_mine(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("b", "a");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    assert_eq!(control.mode("a"), "reserved");
    // A try is refused as ever; a request that would wait is let past.
    assert!(control.refused("RLOCK.ACQUIRE a a 1000"));
    let granted = control.token(&block("a", "a"));
    assert_eq!(control.held_by("a"), "a exclusive 1");
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    control.has_waiters("a", 1);
    // Whoever holds nothing that is waited for waits its turn.
    let mut other = by.wait(&server, "a", "z");
    control.release("a", "a");
    assert_eq!(control.mode("a"), "reserved");
    control.release("b", "a");
    assert!(many.token() > granted);
    assert_eq!(control.held_by("a"), "m exclusive 1");
    assert_eq!(control.int("RLOCK.MRELEASE 2 a b m"), 2);
    other.token();
}

both_ways!(it_is_let_past_all_who_wait_for_it_directly_or_not);
fn it_is_let_past_all_who_wait_for_it_directly_or_not(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    // m waits for z, which waits for a.
    control.take("c", "a");
    control.take("b", "z");
    let mut z = by.wait(&server, "c", "z");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let mut behind = by.wait(&server, "a", "y");
    control.token(&block("a", "a"));
    control.release("c", "a");
    z.token();
    control.release("a", "a");
    control.release("b", "z");
    many.token();
    control.ask("RLOCK.MRELEASE 2 a b m");
    behind.token();
}

both_ways!(it_waits_ahead_of_them_where_the_key_is_not_free);
fn it_waits_ahead_of_them_where_the_key_is_not_free(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("b", "a");
    control.take("a", "c");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let mut first = by.wait(&server, "a", "a");
    control.has_waiters("a", 2);
    control.release("a", "c");
    first.token();
    assert_eq!(control.held_by("a"), "a exclusive 1");
    control.release("a", "a");
    control.release("b", "a");
    many.token();
}

both_ways!(it_is_let_past_no_one_who_does_not_wait_for_it);
fn it_is_let_past_no_one_who_does_not_wait_for_it(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("b", "a");
    control.take("a", "c");
    let mut stranger = by.wait(&server, "a", "z");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    // Behind the stranger, ahead of the one who waits for it.
    let mut middle = by.wait(&server, "a", "a");
    control.release("a", "c");
    stranger.token();
    control.release("a", "z");
    middle.token();
    control.release("a", "a");
    control.release("b", "a");
    many.token();
}

both_ways!(a_reader_is_let_past_a_writer_that_waits_for_it);
fn a_reader_is_let_past_a_writer_that_waits_for_it(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE x r1 100000 READ");
    control.take("z", "r2");
    // The writer's owner waits for r2 elsewhere.
    let mut writer = by.request(&server, "RLOCK.ACQUIRE x w 100000 WRITE BLOCK 0");
    let mut elsewhere = by.wait(&server, "z", "w");
    control.token("RLOCK.ACQUIRE x r2 100000 READ BLOCK 0");
    assert_eq!(control.held_by("x"), "r1 read 1, r2 read 1");
    control.release("z", "r2");
    elsewhere.token();
    control.ask("RLOCK.RELEASE x r1 READ");
    control.ask("RLOCK.RELEASE x r2 READ");
    writer.token();
}

both_ways!(a_long_chain_is_no_ring);
fn a_long_chain_is_no_ring(by: Way) {
    const LENGTH: usize = 60;
    let server = Server::start();
    let mut control = server.raw();
    for n in 0..LENGTH {
        control.take(&format!("k{n}"), &format!("o{n}"));
    }
    let mut waiters: Vec<_> = (1..LENGTH)
        .map(|n| by.wait(&server, &format!("k{}", n - 1), &format!("o{n}")))
        .collect();
    assert_eq!(control.counter("rlock_waiting"), LENGTH as i64 - 1);
    for (n, waiter) in waiters.iter_mut().enumerate() {
        if n > 0 {
            control.release(&format!("k{}", n - 1), &format!("o{n}"));
        }
        control.release(&format!("k{n}"), &format!("o{n}"));
        waiter.token();
    }
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
}

both_ways!(many_who_wait_for_one_are_no_ring);
fn many_who_wait_for_one_are_no_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("x", "a");
    control.take("y", "a");
    control.take("z", "b");
    // Two ways from c to a, and none back.
    let mut waiters = [
        by.wait(&server, "x", "b"),
        by.wait(&server, "y", "c"),
        by.wait(&server, "z", "c"),
        by.wait(&server, "x", "c"),
    ];
    control.ask("RLOCK.RELEASE y a");
    waiters[1].token();
    control.ask("RLOCK.RELEASE x a");
    waiters[0].token();
    control.release("z", "b");
    waiters[2].token();
    control.release("x", "b");
    waiters[3].token();
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
}

both_ways!(an_owner_does_not_wait_for_itself);
fn an_owner_does_not_wait_for_itself(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "b");
    let mut twice = [by.wait(&server, "k", "a"), by.wait(&server, "k", "a")];
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 k l a 100000 BLOCK 0");
    control.has_waiters("k", 3);
    // Waiting for l, where one's own request stands first, either.
    let mut same = by.wait(&server, "l", "a");
    control.release("k", "b");
    for waiter in &mut twice {
        waiter.token();
    }
    many.token();
    same.token();
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
}

both_ways!(requests_for_the_same_keys_in_any_order_are_no_ring);
fn requests_for_the_same_keys_in_any_order_are_no_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("a", "z");
    control.take("b", "y");
    let mut one = by.request(&server, "RLOCK.MACQUIRE 2 a b one 100000 BLOCK 0");
    let mut two = by.request(&server, "RLOCK.MACQUIRE 2 b a two 100000 BLOCK 0");
    let mut three = by.request(&server, "RLOCK.MACQUIRE 3 c b a three 100000 BLOCK 0");
    control.release("b", "y");
    control.release("a", "z");
    one.token();
    control.ask("RLOCK.MRELEASE 2 a b one");
    two.token();
    control.ask("RLOCK.MRELEASE 2 a b two");
    three.token();
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
}

both_ways!(a_grant_to_an_owner_that_waits_elsewhere_closes_no_ring);
fn a_grant_to_an_owner_that_waits_elsewhere_closes_no_ring(by: Way) {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    control.take("x", "q");
    control.take("y", "s");
    let mut for_x = by.wait(&server, "x", "p");
    let mut for_y = by.wait(&server, "y", "p");
    // Behind p, whom it makes wait: nobody looked.
    let mut s = by.wait(&server, "x", "s");
    control.ok("CONFIG SET rlock.deadlock-detection yes");
    // p, once it holds x, would wait for s, which waits for p.
    control.release("x", "q");
    let told = poll(BOUND, || {
        let soon = std::time::Duration::from_millis(5);
        let second = for_y.end_within(soon);
        second.or_else(|| match for_x.end_within(soon) {
            Some(error @ Value::ServerError(_)) => Some(error),
            _ => None,
        })
    });
    let line = ring(told.expect("one of p's requests is refused"));
    assert!(line.contains("p waits for y (s)"), "{line}");
    assert!(line.contains("s waits for x (p)"), "{line}");
    assert_eq!(control.counter("rlock_deadlocks_refused"), 1);
    // Nobody is stuck: whoever has x lets go, and s is done.
    if control.held_by("x") == "p exclusive 1" {
        control.release("x", "p");
    }
    s.token();
}

both_ways!(a_lock_that_a_waiting_owner_came_to_in_another_way_closes_no_ring);
fn a_lock_that_a_waiting_owner_came_to_in_another_way_closes_no_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("x", "q");
    control.take("y", "w");
    control.take("source", "p");
    let mut p = by.wait(&server, "y", "p");
    let mut w = by.wait(&server, "x", "w");
    // x becomes p's by no request of p's.
    control.ok("RENAME source x");
    let line = ring(p.end());
    assert!(line.contains("p waits for y (w)"), "{line}");
    assert!(line.contains("w waits for x (p)"), "{line}");
    control.has_waiters("x", 1);
    control.release("x", "p");
    w.token();
}

both_ways!(a_request_that_is_refused_keeps_its_connection_and_the_queues_in_order);
fn a_request_that_is_refused_keeps_its_connection_and_the_queues_in_order(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("x", "a");
    control.take("y", "b");
    let mut a = by.wait(&server, "y", "a");
    let mut c = by.wait(&server, "x", "c");
    let mut b = server.raw();
    for _ in 0..20 {
        assert_eq!(b.code(&block("x", "b")), "DEADLOCK");
    }
    let mut d = by.wait(&server, "x", "d");
    assert_eq!(control.waiters("x"), 2);
    eventually("its connection is in step", || b.ask("PING") == pong());
    b.release("y", "b");
    a.token();
    control.release("x", "a");
    c.token();
    control.release("x", "c");
    d.token();
}

both_ways!(a_request_for_many_keys_is_let_past_too);
fn a_request_for_many_keys_is_let_past_too(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("b", "a");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    assert!(control.refused("RLOCK.MACQUIRE 2 a c a 1000"));
    control.token("RLOCK.MACQUIRE 2 a c a 100000 BLOCK 0");
    assert_eq!(control.held_by("a"), "a exclusive 1");
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    assert_eq!(control.int("RLOCK.MRELEASE 3 a b c a"), 3);
    many.token();
}
