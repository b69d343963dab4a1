//! Owners that wait for each other in a ring would wait for ever: the request that
//! would close the ring is refused, and nothing else changes.

use redis::Value;

use super::{block, ring};
use crate::support::{both_ways, code, eventually, Ask, Server, Way};

both_ways!(the_request_that_closes_a_ring_of_two_is_refused);
fn the_request_that_closes_a_ring_of_two_is_refused(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k0", "o0");
    control.take("k1", "o2");
    let mut waits = by.wait(&server, "k1", "o0");
    let before = [control.state(b"k0"), control.state(b"k1")];
    let changes = control.changes();
    let mut closing = server.raw();
    assert_eq!(
        ring(closing.ask(&block("k0", "o2"))),
        "DEADLOCK o2 waits for k0 (o0), o0 waits for k1 (o2)"
    );
    assert_eq!([control.state(b"k0"), control.state(b"k1")], before);
    assert_eq!(control.changes(), changes);
    assert_eq!(control.waiters("k0"), 0);
    assert_eq!(control.waiters("k1"), 1);
    assert_eq!(control.counter("rlock_deadlocks_refused"), 1);

    // Who was refused lets go of what it has, and the other goes on.
    assert_eq!(closing.int("RLOCK.RELEASE k1 o2"), 0);
    waits.token();
    assert_eq!(control.held_by("k1"), "o0 exclusive 1");
    let mut again = by.wait(&server, "k0", "o2");
    assert_eq!(control.int("RLOCK.RELEASE k0 o0"), 0);
    again.token();
}

both_ways!(a_ring_of_any_length_is_seen);
fn a_ring_of_any_length_is_seen(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for length in [3, 10, 100] {
        control.ask("FLUSHALL");
        for n in 0..length {
            control.take(&format!("k{n}"), &format!("o{n}"));
        }
        // Each waits for the next one's; all but the last.
        let mut waiters: Vec<_> = (0..length - 1)
            .map(|n| by.wait(&server, &format!("k{}", n + 1), &format!("o{n}")))
            .collect();
        let line = ring(control.ask(&block("k0", &format!("o{}", length - 1))));
        let last = length - 1;
        let first = format!("DEADLOCK o{last} waits for k0 (o0), o0 waits for k1 (o1)");
        assert!(line.starts_with(&first), "{line}");
        if length <= 10 {
            let links = 1 + line.matches("), ").count();
            assert_eq!(links, length, "{line}");
            let end = format!("o{} waits for k{last} (o{last})", last - 1);
            assert!(line.ends_with(&end), "{line}");
        }
        // All of them wait on, and are served as soon as it can be.
        for n in 1..length {
            assert_eq!(control.info(&format!("k{n}")).waiters, 1);
        }
        for n in (1..length).rev() {
            let free = format!("RLOCK.RELEASE k{n} o{n}");
            assert_eq!(control.int(&free), 0);
            waiters[n - 1].token();
        }
    }
}

both_ways!(an_owner_is_one_over_all_its_connections);
fn an_owner_is_one_over_all_its_connections(by: Way) {
    let server = Server::start();
    let (mut one, mut two) = (server.raw(), server.raw());
    one.take("k0", "a");
    two.take("k1", "b");
    two.take("k2", "c");
    // a waits twice, on connections that hold nothing.
    let mut for_b = by.wait(&server, "k1", "a");
    let mut for_c = by.wait(&server, "k2", "a");
    for (key, owner, other) in [("k1", "b", "k1"), ("k2", "c", "k2")] {
        let mut fresh = server.raw();
        let line = ring(fresh.ask(&block("k0", owner)));
        let expected = format!("DEADLOCK {owner} waits for k0 (a), a waits for {other} ({owner})");
        assert_eq!(line, expected, "{key}");
    }
    one.ask("RLOCK.RELEASE k1 b");
    one.ask("RLOCK.RELEASE k2 c");
    for_b.token();
    for_c.token();
}

both_ways!(a_ring_over_several_databases_is_one);
fn a_ring_over_several_databases_is_one(by: Way) {
    let server = Server::start();
    let (mut zero, mut one) = (server.raw(), server.raw());
    one.ask("SELECT 1");
    zero.take("k", "a");
    one.take("k", "b");
    let mut client = server.raw();
    client.ask("SELECT 1");
    let mut waits = by.on(client, "RLOCK.ACQUIRE k a 100000 BLOCK 0");
    let line = ring(zero.ask(&block("k", "b")));
    assert_eq!(line, "DEADLOCK b waits for k (a), a waits for k (b)");
    // The same names in one database only are no ring.
    let mut other = by.wait(&server, "k", "c");
    assert_eq!(one.int("RLOCK.RELEASE k b"), 0);
    waits.token();
    zero.ask("RLOCK.RELEASE k a");
    other.token();
}

both_ways!(a_try_never_gets_the_error_of_a_ring);
fn a_try_never_gets_the_error_of_a_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k0", "a");
    control.take("k1", "b");
    let _waits = by.wait(&server, "k1", "a");
    let script = "return redis.call('RLOCK.ACQUIRE', KEYS[1], 'b', '1000', 'BLOCK', '0')";
    assert!(control.refused("RLOCK.ACQUIRE k0 b 1000"));
    assert!(control.refused(&["EVAL", script, "1", "k0"]));
    let replies = control.ask_all(&["MULTI", &block("k0", "b"), "EXEC"]);
    assert_eq!(replies[2], Value::Array(vec![Value::Nil]));
    assert!(control.refused("RLOCK.MACQUIRE 2 k0 k2 b 1000"));
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    ring(control.ask(&block("k0", "b")));
}

both_ways!(leases_time_outs_and_watchdogs_are_no_way_out);
fn leases_time_outs_and_watchdogs_are_no_way_out(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    // Leases that end soon, and a wait that does.
    for (first, second, wait, own) in [
        ("5000", "100000", "BLOCK 0", "BLOCK 0"),
        ("100000", "5000", "BLOCK 0", "BLOCK 0"),
        ("100000", "100000", "BLOCK 5000", "BLOCK 0"),
        ("100000", "100000", "BLOCK 0", "BLOCK 50"),
        ("100000 WATCHDOG", "100000 WATCHDOG", "BLOCK 0", "BLOCK 0"),
    ] {
        let (mut a, mut b) = (server.raw(), server.raw());
        a.token(&format!("RLOCK.ACQUIRE k0 a {first}"));
        b.token(&format!("RLOCK.ACQUIRE k1 b {second}"));
        let waiter = by.with(&server, &format!("k1 a 100000 {wait}"));
        let closing = format!("RLOCK.ACQUIRE k0 b 100000 {own}");
        assert_eq!(b.code(&closing), "DEADLOCK", "{first} {second}");
        waiter.client.close();
        control.has_waiters("k1", 0);
        control.ask("FLUSHALL");
    }
}

both_ways!(a_wait_that_is_over_is_no_part_of_a_ring);
fn a_wait_that_is_over_is_no_part_of_a_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k0", "a");
    control.take("k1", "b");
    let mut short = by.with(&server, "k1 a 1000 BLOCK 30");
    assert_eq!(short.end(), Value::Nil);
    let unblocked = by.wait(&server, "k1", "a");
    match by {
        Way::Block => control.int(&format!("CLIENT UNBLOCK {} ERROR", unblocked.id)),
        Way::Queue => control.int(&unblocked.cancel),
    };
    let closed = by.wait(&server, "k1", "a");
    closed.client.close();
    control.has_waiters("k1", 0);
    let mut waits = by.wait(&server, "k0", "b");
    assert_eq!(control.waiters("k0"), 1);
    // Now a's request is the one that closes it.
    let line = ring(short.client.ask(&block("k1", "a")));
    assert_eq!(line, "DEADLOCK a waits for k1 (b), b waits for k0 (a)");
    control.ask("RLOCK.RELEASE k0 a");
    waits.token();
}

both_ways!(without_the_search_they_wait);
fn without_the_search_they_wait(by: Way) {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    control.take("k0", "a");
    control.take("k1", "b");
    let mut for_b = by.wait(&server, "k1", "a");
    let mut for_a = by.wait(&server, "k0", "b");
    assert_eq!(control.waiters("k0"), 1);
    assert_eq!(control.waiters("k1"), 1);
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    assert_eq!(control.int("RLOCK.FORCE k0"), 1);
    for_a.token();
    control.ask("RLOCK.FORCE k1");
    for_b.token();

    // Now that somebody looks: b has k0, and a has k1.
    control.ok("CONFIG SET rlock.deadlock-detection yes");
    let _waits = by.wait(&server, "k1", "b");
    ring(control.ask(&block("k0", "a")));
    let bad = control.ask("CONFIG SET rlock.deadlock-detection maybe");
    assert_eq!(code(&bad), "ERR");
}

#[test]
fn names_that_are_long_or_not_text_stand_in_one_short_line() {
    let server = Server::start();
    let mut control = server.raw();
    let long = |byte: u8| vec![byte; 500];
    let keys = [b"k\r\n\x00\xff'".to_vec(), long(b'k')];
    let owners = [b"o\r\n\x00\xfe\\".to_vec(), long(b'o')];
    let acquire = |key: usize, owner: usize, rest: &[&str]| -> Vec<Vec<u8>> {
        let mut args = vec![b"RLOCK.ACQUIRE".to_vec(), keys[key].clone()];
        args.extend([owners[owner].clone(), b"100000".to_vec()]);
        args.extend(rest.iter().map(|word| word.as_bytes().to_vec()));
        args
    };
    control.token(&acquire(0, 0, &[]));
    control.token(&acquire(1, 1, &[]));
    let mut waiter = server.raw();
    waiter.send(&acquire(1, 0, &["BLOCK", "0"]));
    eventually("it waits", || control.counter("rlock_waiting") == 1);
    let line = control.error(&acquire(0, 1, &["BLOCK", "0"]));
    assert!(line.starts_with("DEADLOCK "), "{line}");
    assert!(line.len() <= 512, "{} bytes", line.len());
    assert!(line.chars().all(|c| (' '..='~').contains(&c)), "{line:?}");
    assert!(line.contains("waits for"), "{line}");
    assert!(line.contains("\\x00") && line.contains("\\xff"), "{line}");
    control.ask("PING");
}

both_ways!(the_connections_own_id_is_an_owner_like_any_other);
fn the_connections_own_id_is_an_owner_like_any_other(by: Way) {
    let server = Server::start();
    let (mut one, mut two) = (server.raw(), server.raw());
    let (first, second) = (one.text("RLOCK.OWNER"), two.text("RLOCK.OWNER"));
    one.token("RLOCK.ACQUIRE k0 * 100000");
    two.token("RLOCK.ACQUIRE k1 * 100000");
    let mut waiter = by.on(one, "RLOCK.ACQUIRE k1 * 100000 BLOCK 0");
    let line = ring(two.ask("RLOCK.ACQUIRE k0 * 100000 BLOCK 0"));
    let expected =
        format!("DEADLOCK {second} waits for k0 ({first}), {first} waits for k1 ({second})");
    assert_eq!(line, expected);
    assert_eq!(two.int("RLOCK.RELEASE k1 *"), 0);
    waiter.token();
}

both_ways!(who_waits_behind_another_waiter_waits_for_it_too);
fn who_waits_behind_another_waiter_waits_for_it_too(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("x", "q");
    control.take("y", "s");
    // s stands behind p in the queue of x, so p must not wait for s.
    let mut p = by.wait(&server, "x", "p");
    let mut s = by.wait(&server, "x", "s");
    let line = ring(control.ask(&block("y", "p")));
    assert_eq!(line, "DEADLOCK p waits for y (s), s waits for x (p)");
    assert_eq!(control.waiters("x"), 2);
    control.ask("RLOCK.RELEASE x q");
    p.token();
    control.ask("RLOCK.RELEASE x p");
    s.token();
}

both_ways!(many_keys_are_part_of_rings_on_either_side);
fn many_keys_are_part_of_rings_on_either_side(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    // A request for many keys that waits.
    control.take("a", "one");
    control.take("c", "m");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let line = ring(control.ask(&block("c", "one")));
    assert_eq!(line, "DEADLOCK one waits for c (m), m waits for a (one)");
    control.ask("RLOCK.RELEASE a one");
    many.token();
    control.ask("FLUSHALL");

    // And one that closes the ring: it takes nothing.
    control.take("b", "one");
    control.take("c", "m");
    let mut waiter = by.wait(&server, "c", "one");
    let line = ring(control.ask("RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0"));
    assert_eq!(line, "DEADLOCK m waits for b (one), one waits for c (m)");
    assert_eq!(control.mode("a"), "free");
    assert_eq!(control.waiters("b"), 0);
    control.ask("RLOCK.RELEASE c m");
    waiter.token();
    control.ask("FLUSHALL");

    // One that holds some of its keys already.
    control.take("a", "m");
    control.take("b", "one");
    let mut many = by.request(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let line = ring(control.ask(&block("a", "one")));
    assert_eq!(line, "DEADLOCK one waits for a (m), m waits for b (one)");
    control.ask("RLOCK.RELEASE b one");
    many.token();
}
