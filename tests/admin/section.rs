//! The section `rlock` of INFO: what is counted, when, and what it never counts.

use std::collections::BTreeMap;

use crate::support::{code, eventually, now_ms, pass, Ask, Bound, RawClient, Server, Waiter};

/// What only goes up.
const COUNTED: [&str; 16] = [
    "acquired",
    "contended",
    "granted_after_wait",
    "timed_out",
    "released",
    "renewed",
    "expired",
    "forced",
    "evicted",
    "cancelled",
    "deadlocks_refused",
    "max_waiters_refused",
    "grants_revoked",
    "once_rebound",
    "redisson_yields",
    "redisson_yields_used",
];

/// What goes up and down.
const NOW: [&str; 23] = [
    "faults",
    "held_count",
    "held_sum_ms",
    "wait_count",
    "wait_sum_us",
    "recovery_presumed",
    "recovery_running",
    "recovery_scanned",
    "subscribers_seen",
    "held",
    "watchdog_holds",
    "oldest_hold_ms",
    "held_p50_ms",
    "held_p99_ms",
    "held_max_ms",
    "held_max_last_minute_ms",
    "waiting",
    "queued",
    "oldest_wait_ms",
    "wait_p50_us",
    "wait_p99_us",
    "wait_max_us",
    "wait_max_last_minute_us",
];

/// Losses of holds that a connection was bound to.
const LOST: [&str; 11] = [
    "expired",
    "forced",
    "deleted",
    "evicted",
    "flushed",
    "overwritten",
    "demoted",
    "moved",
    "rebound",
    "released",
    "silent",
];

/// What has gone up since, as one would write it: `acquired 1, released 1`.
#[track_caller]
fn up(client: &mut RawClient, before: &BTreeMap<String, i64>) -> String {
    let now = client.counters();
    let rises = COUNTED.iter().filter_map(|name| {
        let field = format!("rlock_{name}");
        let rise = now[&field] - before[&field];
        (rise != 0).then(|| format!("{name} {rise}"))
    });
    rises.collect::<Vec<_>>().join(", ")
}

/// What a request makes go up.
#[track_caller]
fn makes_go_up(client: &mut RawClient, request: &str) -> String {
    let before = client.counters();
    client.ask(request);
    up(client, &before)
}

#[test]
fn every_number_is_there_and_begins_at_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    let found = control.counters();
    for name in COUNTED.iter().chain(&NOW) {
        assert_eq!(found.get(&format!("rlock_{name}")), Some(&0), "{name}");
    }
    for reason in LOST {
        assert_eq!(found.get(&format!("rlock_lost_{reason}")), Some(&0));
    }
    assert!(found["rlock_memory_bytes"] > 0);
    assert_eq!(found["rlock_may_grant"], 1);
    let all = COUNTED.len() + NOW.len() + LOST.len() + 2;
    assert_eq!(found.len(), all, "{found:?}");
    for sections in ["INFO everything", "INFO modules", "INFO rlock"] {
        let all = control.text(sections);
        assert!(all.contains("# rlock\r\n"), "{sections}: {all}");
        assert!(all.contains("rlock_acquired:0\r\n"), "{sections}");
    }
}

#[test]
fn requests_are_counted_by_how_they_end() {
    let server = Server::start();
    let mut control = server.raw();
    for (request, expected) in [
        ("RLOCK.ACQUIRE k a 100000", "acquired 1"),
        ("RLOCK.ACQUIRE k a 100000", "acquired 1"),
        ("RLOCK.ACQUIRE k b 100000", "contended 1"),
        (
            "RLOCK.ACQUIRE k b 100000 BLOCK 10",
            "contended 1, timed_out 1",
        ),
        ("RLOCK.ACQUIRE k a 100000 ONCE", "renewed 1"),
        ("RLOCK.ACQUIRE k a 0", ""),
        ("RLOCK.RENEW k a 100000", "renewed 1"),
        ("RLOCK.RENEW k b 100000", ""),
        ("RLOCK.RELEASE k a", "released 1"),
        ("RLOCK.RELEASE k a", "released 1"),
        ("RLOCK.RELEASE k a", ""),
        ("RLOCK.FORCE k", ""),
        ("RLOCK.ACQUIRE k a 100000", "acquired 1"),
        ("RLOCK.FORCE k", "forced 1"),
        ("RLOCK.ACQUIRE k a 100000 READ", "acquired 1"),
        ("RLOCK.ACQUIRE k b 100000 READ", "acquired 1"),
        ("RLOCK.ACQUIRE k a 100000 WRITE", "contended 1"),
        ("RLOCK.ACQUIRE k a 100000", ""),
        ("RLOCK.RELEASE k a WRITE", ""),
        ("RLOCK.RENEW k a 100000 READ", "renewed 1"),
        ("RLOCK.RELEASE k a READ", "released 1"),
        ("RLOCK.INFO k", ""),
        ("RLOCK.WAITERS k", ""),
        ("RLOCK.LIST", ""),
        ("RLOCK.TOP", ""),
        ("RLOCK.OWNER", ""),
        ("DEL k", ""),
        ("RLOCK.ACQUIRE k a 100000 BLOCK 0", "acquired 1"),
    ] {
        assert_eq!(makes_go_up(&mut control, request), expected, "{request}");
    }
}

#[test]
fn a_wait_is_counted_when_it_begins_and_as_it_ends() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let before = control.counters();
    let mut granted = Waiter::new(&server, "k", "b");
    let gone = Waiter::new(&server, "k", "c");
    assert_eq!(up(&mut control, &before), "contended 2");
    assert_eq!(control.counter("rlock_waiting"), 2);
    gone.client.close();
    control.has_waiters("k", 1);
    assert_eq!(up(&mut control, &before), "contended 2");
    assert_eq!(control.counter("rlock_waiting"), 1);
    control.ask("RLOCK.RELEASE k a");
    granted.token();
    let expected = "acquired 1, contended 2, granted_after_wait 1, released 1";
    assert_eq!(up(&mut control, &before), expected);
    assert_eq!(control.counter("rlock_waiting"), 0);
}

#[test]
fn leases_that_run_out_are_counted_and_releases_are_not_among_them() {
    let server = Server::start_observed();
    let mut control = server.raw();
    let before = control.counters();
    for key in ["x", "y", "z"] {
        control.token(&format!("RLOCK.ACQUIRE {key} a 50"));
    }
    eventually("all have run out", || control.counter("rlock_expired") == 3);
    control.token("RLOCK.ACQUIRE x a 300");
    control.ask("DEL x");
    pass(now_ms() + 400);
    assert_eq!(up(&mut control, &before), "acquired 4, expired 3");
    // One reader of two.
    control.token("RLOCK.ACQUIRE doc a 50 READ");
    control.token("RLOCK.ACQUIRE doc b 100000 READ");
    eventually("one reader's has run out", || {
        control.counter("rlock_expired") == 4
    });
}

#[test]
fn evictions_are_counted() {
    let server = Server::start();
    let mut control = server.raw();
    control.ok("CONFIG SET maxmemory-policy allkeys-random");
    control.token("RLOCK.ACQUIRE k a 100000");
    control.ok("CONFIG SET maxmemory 1");
    control.ask("PING");
    control.ok("CONFIG SET maxmemory 0");
    assert_eq!(control.int("EXISTS k"), 0);
    eventually("it is counted", || control.counter("rlock_evicted") == 1);
    assert_eq!(control.counter("rlock_expired"), 0);
    assert_eq!(control.counter("rlock_released"), 0);
}

#[test]
fn refused_rings_are_counted() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE x a 100000");
    control.token("RLOCK.ACQUIRE y b 100000");
    let _waits = Waiter::new(&server, "y", "a");
    for count in 1..=3 {
        let reply = control.ask("RLOCK.ACQUIRE x b 100000 BLOCK 0");
        assert_eq!(code(&reply), "DEADLOCK");
        assert_eq!(control.counter("rlock_deadlocks_refused"), count);
    }
    assert_eq!(control.counter("rlock_waiting"), 1);
    assert_eq!(control.counter("rlock_timed_out"), 0);
}

#[test]
fn grants_that_were_revoked_are_counted() {
    let server = Server::start();
    let mut control = server.raw();
    for count in 1..=20 {
        control.token("RLOCK.ACQUIRE k a 100000");
        let mut lost = Waiter::new(&server, "k", "b");
        let mut next = Waiter::new(&server, "k", "c");
        let kill = format!("CLIENT KILL ID {}", lost.id);
        control.ask_all(&["RLOCK.RELEASE k a", &kill]);
        assert!(lost.client.is_closed());
        next.token();
        assert_eq!(control.counter("rlock_grants_revoked"), count);
        control.ask("RLOCK.RELEASE k c");
    }
}

#[test]
fn watchdog_holds_are_those_of_now() {
    let server = Server::start();
    let mut control = server.raw();
    let holds = |control: &mut RawClient| control.counter("rlock_watchdog_holds");
    let mut one = Bound::new(&server, "k", "a");
    assert_eq!(holds(&mut control), 1);
    let two = Bound::new(&server, "doc", "b");
    one.client.ask("RLOCK.ACQUIRE k a 100000 WATCHDOG");
    assert_eq!(holds(&mut control), 3);
    one.client.ask("RLOCK.ACQUIRE k a 100000");
    assert_eq!(holds(&mut control), 3, "a plain one is none");
    one.client.ask("RLOCK.RELEASE k a ALL");
    assert_eq!(holds(&mut control), 1);
    let before = control.counters();
    two.client.close();
    control.goes_free("doc");
    assert_eq!(holds(&mut control), 0);
    assert_eq!(up(&mut control, &before), "released 1", "so a close counts");
}

#[test]
fn two_hundred_who_wait_are_counted() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    control.token("RLOCK.ACQUIRE l a 100000");
    let before = control.counters();
    let mut queue: Vec<_> = (0..199)
        .map(|n| Waiter::new(&server, "k", &format!("w{n}")))
        .collect();
    // For two keys, and one all the same.
    queue.push(Waiter::by(&server, "RLOCK.MACQUIRE 2 k l m 100000 BLOCK 0"));
    assert_eq!(control.counter("rlock_waiting"), 200);
    assert_eq!(up(&mut control, &before), "contended 200");
    drop(queue);
    eventually("nobody waits", || control.counter("rlock_waiting") == 0);
}

#[test]
fn how_long_those_waited_who_were_granted_is_shown() {
    let server = Server::start();
    let mut control = server.raw();
    let waits = |control: &mut RawClient| {
        ["p50", "p99", "max"].map(|name| control.counter(&format!("rlock_wait_{name}_us")))
    };
    let begin = std::time::Instant::now();
    for n in 0..5 {
        control.token("RLOCK.ACQUIRE k a 100000");
        let mut waiter = Waiter::new(&server, "k", "b");
        let since = now_ms();
        pass(since + if n == 4 { 400 } else { 40 });
        control.ask("RLOCK.RELEASE k a");
        waiter.token();
        control.ask("RLOCK.RELEASE k b");
    }
    let longest = i64::try_from(begin.elapsed().as_micros()).expect("it ends");
    let [p50, p99, max] = waits(&mut control);
    assert!(p50 <= p99 && p99 <= max, "{p50} {p99} {max}");
    assert!((400_000..=longest).contains(&max), "{max} of {longest}");
    // Told in steps, perhaps, but of this size.
    assert!(p50 >= 20_000, "{p50}");
    // A grant without a wait tells nothing of waiting.
    for _ in 0..200 {
        control.token("RLOCK.ACQUIRE k a 100000");
        control.ask("RLOCK.RELEASE k a");
    }
    assert_eq!(waits(&mut control), [p50, p99, max]);
}
