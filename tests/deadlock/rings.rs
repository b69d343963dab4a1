//! Owners that wait for each other in a ring would wait for ever: the request that
//! would close the ring is refused, and nothing else changes.

use redis::Value;

use crate::support::ask::{error_line, Ask};
use crate::support::locks::{code, has_waiters, info, token, Say, Waiter};
use crate::support::look::{counter, held_by, set, waits};
use crate::support::{RawClient, Server};

/// What is told of a ring, as the documents write it: names without quotes.
#[track_caller]
pub fn ring(reply: Value) -> String {
    let line = error_line(reply);
    assert!(line.starts_with("DEADLOCK "), "{line}");
    assert!(line.len() <= 512 && !line.contains('\n'), "{line}");
    line.replace('\'', "")
}

#[track_caller]
fn take(client: &mut RawClient, key: &str, owner: &str) -> i64 {
    token(client.say(&format!("RLOCK.ACQUIRE {key} {owner} 100000")))
}

fn ask(key: &str, owner: &str) -> String {
    format!("RLOCK.ACQUIRE {key} {owner} 100000 BLOCK 0")
}

#[test]
fn the_request_that_closes_a_ring_of_two_is_refused() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "k0", "o0");
    take(&mut control, "k1", "o2");
    let mut waits = Waiter::new(&server, "k1", "o0");
    let before = [control.state(b"k0"), control.state(b"k1")];
    let changes = control.changes();
    let mut closing = server.raw();
    assert_eq!(
        ring(closing.say(&ask("k0", "o2"))),
        "DEADLOCK o2 waits for k0 (o0), o0 waits for k1 (o2)"
    );
    assert_eq!([control.state(b"k0"), control.state(b"k1")], before);
    assert_eq!(control.changes(), changes);
    assert_eq!(info(&mut control, "k0").waiters, 0);
    assert_eq!(info(&mut control, "k1").waiters, 1);
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 1);

    // Who was refused lets go of what it has, and the other goes on.
    assert_eq!(closing.say("RLOCK.RELEASE k1 o2"), Value::Int(0));
    waits.token();
    assert_eq!(held_by(&mut control, "k1"), "o0 exclusive 1");
    let mut again = Waiter::new(&server, "k0", "o2");
    assert_eq!(control.say("RLOCK.RELEASE k0 o0"), Value::Int(0));
    again.token();
}

#[test]
fn a_ring_of_any_length_is_seen() {
    let server = Server::start();
    let mut control = server.raw();
    for length in [3, 10, 100] {
        control.say("FLUSHALL");
        for n in 0..length {
            take(&mut control, &format!("k{n}"), &format!("o{n}"));
        }
        // Each waits for the next one's; all but the last.
        let mut waiters: Vec<_> = (0..length - 1)
            .map(|n| Waiter::new(&server, &format!("k{}", n + 1), &format!("o{n}")))
            .collect();
        let line = ring(control.say(&ask("k0", &format!("o{}", length - 1))));
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
            assert_eq!(info(&mut control, &format!("k{n}")).waiters, 1);
        }
        for n in (1..length).rev() {
            let free = format!("RLOCK.RELEASE k{n} o{n}");
            assert_eq!(control.say(&free), Value::Int(0));
            waiters[n - 1].token();
        }
    }
}

#[test]
fn an_owner_is_one_over_all_its_connections() {
    let server = Server::start();
    let (mut one, mut two) = (server.raw(), server.raw());
    take(&mut one, "k0", "a");
    take(&mut two, "k1", "b");
    take(&mut two, "k2", "c");
    // a waits twice, on connections that hold nothing.
    let mut for_b = Waiter::new(&server, "k1", "a");
    let mut for_c = Waiter::new(&server, "k2", "a");
    for (key, owner, other) in [("k1", "b", "k1"), ("k2", "c", "k2")] {
        let mut fresh = server.raw();
        let line = ring(fresh.say(&ask("k0", owner)));
        let expected = format!("DEADLOCK {owner} waits for k0 (a), a waits for {other} ({owner})");
        assert_eq!(line, expected, "{key}");
    }
    one.say("RLOCK.RELEASE k1 b");
    one.say("RLOCK.RELEASE k2 c");
    for_b.token();
    for_c.token();
}

#[test]
fn a_ring_over_several_databases_is_one() {
    let server = Server::start();
    let (mut zero, mut one) = (server.raw(), server.raw());
    one.say("SELECT 1");
    take(&mut zero, "k", "a");
    take(&mut one, "k", "b");
    let mut client = server.raw();
    client.say("SELECT 1");
    let mut waits = Waiter::on(client, "RLOCK.ACQUIRE k a 100000 BLOCK 0");
    let line = ring(zero.say(&ask("k", "b")));
    assert_eq!(line, "DEADLOCK b waits for k (a), a waits for k (b)");
    // The same names in one database only are no ring.
    let mut other = Waiter::new(&server, "k", "c");
    assert_eq!(one.say("RLOCK.RELEASE k b"), Value::Int(0));
    waits.token();
    zero.say("RLOCK.RELEASE k a");
    other.token();
}

#[test]
fn a_try_is_never_told_of_a_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "k0", "a");
    take(&mut control, "k1", "b");
    let _waits = Waiter::new(&server, "k1", "a");
    let script = "return redis.call('RLOCK.ACQUIRE', KEYS[1], 'b', '1000', 'BLOCK', '0')";
    assert!(control.refused("RLOCK.ACQUIRE k0 b 1000"));
    assert_eq!(control.call(&["EVAL", script, "1", "k0"]), Value::Nil);
    let replies = control.say_all(&["MULTI", &ask("k0", "b"), "EXEC"]);
    assert_eq!(replies[2], Value::Array(vec![Value::Nil]));
    let many = control.say("RLOCK.MACQUIRE 2 k0 k2 b 1000");
    assert_eq!(many, Value::Nil);
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
    ring(control.say(&ask("k0", "b")));
}

#[test]
fn leases_time_outs_and_watchdogs_are_no_way_out() {
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
        token(a.say(&format!("RLOCK.ACQUIRE k0 a {first}")));
        token(b.say(&format!("RLOCK.ACQUIRE k1 b {second}")));
        let waiter = Waiter::with(&server, &format!("k1 a 100000 {wait}"));
        let closing = format!("RLOCK.ACQUIRE k0 b 100000 {own}");
        assert_eq!(code(&b.say(&closing)), "DEADLOCK", "{first} {second}");
        waiter.client.close();
        has_waiters(&mut control, "k1", 0);
        control.say("FLUSHALL");
    }
}

#[test]
fn a_wait_that_is_over_is_no_part_of_a_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "k0", "a");
    take(&mut control, "k1", "b");
    let mut short = Waiter::with(&server, "k1 a 1000 BLOCK 30");
    assert_eq!(short.client.read(), Value::Nil);
    let unblocked = Waiter::new(&server, "k1", "a");
    control.say(&format!("CLIENT UNBLOCK {} ERROR", unblocked.id));
    let closed = Waiter::new(&server, "k1", "a");
    closed.client.close();
    has_waiters(&mut control, "k1", 0);
    let mut waits = Waiter::new(&server, "k0", "b");
    assert_eq!(info(&mut control, "k0").waiters, 1);
    // Now a's request is the one that closes it.
    let line = ring(short.client.say(&ask("k1", "a")));
    assert_eq!(line, "DEADLOCK a waits for k1 (b), b waits for k0 (a)");
    control.say("RLOCK.RELEASE k0 a");
    waits.token();
}

#[test]
fn without_the_search_they_wait() {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    take(&mut control, "k0", "a");
    take(&mut control, "k1", "b");
    let mut for_b = Waiter::new(&server, "k1", "a");
    let mut for_a = Waiter::new(&server, "k0", "b");
    assert_eq!(info(&mut control, "k0").waiters, 1);
    assert_eq!(info(&mut control, "k1").waiters, 1);
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
    assert_eq!(control.say("RLOCK.FORCE k0"), Value::Int(1));
    for_a.token();
    control.say("RLOCK.FORCE k1");
    for_b.token();

    // Now that somebody looks: b has k0, and a has k1.
    set(&mut control, "rlock.deadlock-detection yes");
    let _waits = Waiter::new(&server, "k1", "b");
    ring(control.say(&ask("k0", "a")));
    let bad = control.say("CONFIG SET rlock.deadlock-detection maybe");
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
    token(control.call(&acquire(0, 0, &[])));
    token(control.call(&acquire(1, 1, &[])));
    let mut waiter = server.raw();
    waiter.send(&acquire(1, 0, &["BLOCK", "0"]));
    crate::support::eventually("it waits", || counter(&mut control, "rlock_waiting") == 1);
    let line = error_line(control.call(&acquire(0, 1, &["BLOCK", "0"])));
    assert!(line.starts_with("DEADLOCK "), "{line}");
    assert!(line.len() <= 512, "{} bytes", line.len());
    assert!(line.chars().all(|c| (' '..='~').contains(&c)), "{line:?}");
    assert!(line.contains("waits for"), "{line}");
    assert!(line.contains("\\x00") && line.contains("\\xff"), "{line}");
    control.say("PING");
}

#[test]
fn the_connections_own_id_is_an_owner_like_any_other() {
    let server = Server::start();
    let (mut one, mut two) = (server.raw(), server.raw());
    let (first, second) = (one.text("RLOCK.OWNER"), two.text("RLOCK.OWNER"));
    token(one.say("RLOCK.ACQUIRE k0 * 100000"));
    token(two.say("RLOCK.ACQUIRE k1 * 100000"));
    let mut waiter = Waiter::on(one, "RLOCK.ACQUIRE k1 * 100000 BLOCK 0");
    let line = ring(two.say("RLOCK.ACQUIRE k0 * 100000 BLOCK 0"));
    let expected =
        format!("DEADLOCK {second} waits for k0 ({first}), {first} waits for k1 ({second})");
    assert_eq!(line, expected);
    assert_eq!(two.say("RLOCK.RELEASE k1 *"), Value::Int(0));
    waiter.token();
}

#[test]
fn who_waits_behind_another_waiter_waits_for_it_too() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "q");
    take(&mut control, "y", "s");
    // s stands behind p in the queue of x, so p must not wait for s.
    let mut p = Waiter::new(&server, "x", "p");
    let mut s = Waiter::new(&server, "x", "s");
    let line = ring(control.say(&ask("y", "p")));
    assert_eq!(line, "DEADLOCK p waits for y (s), s waits for x (p)");
    assert_eq!(info(&mut control, "x").waiters, 2);
    control.say("RLOCK.RELEASE x q");
    p.token();
    control.say("RLOCK.RELEASE x p");
    s.token();
}

#[test]
fn many_keys_are_part_of_rings_on_either_side() {
    let server = Server::start();
    let mut control = server.raw();
    // A request for many keys that waits.
    take(&mut control, "a", "one");
    take(&mut control, "c", "m");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let line = ring(control.say(&ask("c", "one")));
    assert_eq!(line, "DEADLOCK one waits for c (m), m waits for a (one)");
    control.say("RLOCK.RELEASE a one");
    many.token();
    control.say("FLUSHALL");

    // And one that closes the ring: it takes nothing.
    take(&mut control, "b", "one");
    take(&mut control, "c", "m");
    let mut waiter = Waiter::new(&server, "c", "one");
    let line = ring(control.say("RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0"));
    assert_eq!(line, "DEADLOCK m waits for b (one), one waits for c (m)");
    assert_eq!(info(&mut control, "a").mode, "free");
    assert_eq!(info(&mut control, "b").waiters, 0);
    control.say("RLOCK.RELEASE c m");
    waiter.token();
    control.say("FLUSHALL");

    // One that holds some of its keys already.
    take(&mut control, "a", "m");
    take(&mut control, "b", "one");
    let mut many = waits(&server, "RLOCK.MACQUIRE 2 a b m 100000 BLOCK 0");
    let line = ring(control.say(&ask("a", "one")));
    assert_eq!(line, "DEADLOCK one waits for a (m), m waits for b (one)");
    control.say("RLOCK.RELEASE b one");
    many.token();
}
