//! What the section `rlock` of INFO tells of now: how many locks are held, since when, how
//! long they were, and how long somebody waits.

use crate::support::{eventually, now_ms, pass, Ask, Clock, RawClient, Server, Waiter};

/// Some of the numbers.
#[track_caller]
fn told<const N: usize>(client: &mut RawClient, names: [&str; N]) -> [i64; N] {
    let all = client.counters();
    names.map(|name| all[&format!("rlock_{name}")])
}

#[track_caller]
fn held(client: &mut RawClient) -> i64 {
    client.counter("rlock_held")
}

#[test]
fn a_lock_is_held_once_whoever_holds_it_and_how_often() {
    let server = Server::start_observed();
    let mut client = server.raw();
    for (request, count) in [
        ("RLOCK.ACQUIRE k a 100000", 1),
        ("RLOCK.ACQUIRE k a 100000", 1),
        ("RLOCK.ACQUIRE k b 100000", 1),
        ("RLOCK.MACQUIRE 3 k l m a 100000", 3),
        ("RLOCK.ACQUIRE doc a 100000 READ", 4),
        ("RLOCK.ACQUIRE doc b 100000 READ", 4),
        ("RLOCK.RELEASE doc a READ", 4),
        ("RLOCK.ACQUIRE doc b 100000 WRITE", 4),
        ("RLOCK.RELEASE doc b READ", 4),
        ("RLOCK.RELEASE doc b WRITE", 3),
        ("RLOCK.RELEASE k a ALL", 2),
        ("RLOCK.FORCE l", 1),
        ("RENAME m n", 1),
        ("SWAPDB 0 3", 1),
        ("SELECT 3", 1),
        ("RENAME n o", 1),
        ("DEL o", 0),
        ("RLOCK.ACQUIRE doc a 100000 READ", 1),
        ("HSET other a 1", 1),
        ("PEXPIRE other 100000", 1),
        // Found, it is one that is held.
        ("RLOCK.ACQUIRE other b 100000", 2),
        ("FLUSHALL", 0),
        ("RLOCK.ACQUIRE k a 100000", 1),
        // A lease that ends.
        ("PEXPIRE k 20", 0),
    ] {
        client.ask(request);
        eventually(&format!("{count} after {request}"), || {
            held(&mut client) == count
        });
    }
    assert_eq!(client.counter("rlock_oldest_hold_ms"), 0);
}

#[test]
fn the_oldest_hold_and_the_oldest_wait_are_shown() {
    let server = Server::start();
    let mut client = server.raw();
    let ages = |client: &mut RawClient| told(client, ["oldest_hold_ms", "oldest_wait_ms"]);
    let begin = now_ms();
    client.token("RLOCK.ACQUIRE old a 100000");
    let mut first = Waiter::new(&server, "old", "b");
    let there = now_ms();
    pass(there + 200);
    client.ok("SELECT 1");
    client.token("RLOCK.ACQUIRE new a 100000 READ");
    let mut second = Waiter::new(&server, "old", "c");
    for age in ages(&mut client) {
        assert!((200..=now_ms() - begin + 1).contains(&age), "{age}");
    }
    // A lease that is renewed, or moved to another name, goes on.
    client.ok("SELECT 0");
    assert_eq!(client.int("RLOCK.RENEW old a 100000"), 1);
    client.token("RLOCK.ACQUIRE old a 100000");
    assert!(ages(&mut client)[0] >= 200);
    let passed = now_ms();
    client.ask("RLOCK.RELEASE old a ALL");
    first.token();
    let [hold, wait] = ages(&mut client);
    let most = now_ms() - there + 1;
    assert!(
        (0..=most - 150).contains(&hold) && wait <= most - 150,
        "{hold} {wait}"
    );
    client.ok("RENAME old elsewhere");
    assert!(ages(&mut client)[0] >= now_ms() - passed - 100);
    second.token();
    assert_eq!(ages(&mut client)[1], 0);
    client.ok("FLUSHALL");
    eventually("nothing is held", || ages(&mut client) == [0, 0]);
}

#[test]
fn how_long_locks_were_held_is_shown_however_that_ended() {
    let server = Server::start_observed();
    let mut client = server.raw();
    let max = |client: &mut RawClient| client.counter("rlock_held_max_ms");
    let mut longest = 0;
    for (number, (mode, end)) in [
        ("", "RLOCK.RELEASE k a"),
        ("", "RLOCK.FORCE k"),
        ("", "DEL k"),
        ("READ", "RLOCK.RELEASE k a READ"),
        ("WRITE", "RLOCK.RELEASE k a WRITE"),
        ("READ", "RLOCK.FORCE k"),
        ("", "FLUSHALL"),
    ]
    .into_iter()
    .enumerate()
    {
        client.ask("DEL k");
        client.token(&format!("RLOCK.ACQUIRE k a 100000 {mode}"));
        let wanted = longest + 30;
        pass(now_ms() + wanted);
        assert!(max(&mut client) == longest, "{end}: it is held still");
        client.ask(end);
        eventually(end, || max(&mut client) >= wanted);
        let [half, most, late] = told(
            &mut client,
            ["held_p50_ms", "held_p99_ms", "held_max_last_minute_ms"],
        );
        longest = max(&mut client);
        assert!(
            half <= most && most <= longest,
            "{end}: {half} {most} {longest}"
        );
        assert!(number == 0 || half < longest, "{end}");
        assert_eq!(late, longest, "{end}");
    }
    // A lease that ran out was held to its end.
    client.ask("DEL k");
    client.token(&format!("RLOCK.ACQUIRE k a {}", longest + 100));
    eventually("it is over", || max(&mut client) >= longest + 100);
}

#[test]
fn a_hold_is_one_however_often_it_nests_and_whatever_it_is_called() {
    let server = Server::start_observed();
    let (mut client, mut other) = (server.raw(), server.raw());
    client.token("RLOCK.ACQUIRE k a 100000");
    let since = now_ms();
    other.token("RLOCK.ACQUIRE k a 100000 WATCHDOG");
    pass(since + 60);
    other.int("RLOCK.RELEASE k a");
    client.ok("RENAME k l");
    client.ok("SWAPDB 0 1");
    client.ok("SELECT 1");
    client.int("RLOCK.RENEW l a 100000");
    assert_eq!(client.counter("rlock_held_max_ms"), 0);
    client.int("RLOCK.RELEASE l a");
    assert!(client.counter("rlock_held_max_ms") >= 60);
    assert_eq!(held(&mut client), 0);
}

#[test]
fn a_hold_that_was_found_has_no_age() {
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 100000");
    client.token("RLOCK.ACQUIRE doc a 100000 READ");
    pass(now_ms() + 50);
    server.restart();
    let mut client = server.raw();
    assert_eq!(held(&mut client), 0);
    assert!(client.refused("RLOCK.ACQUIRE k b 1000"));
    client.int("RLOCK.RENEW doc a 100000 READ");
    assert_eq!(told(&mut client, ["held", "oldest_hold_ms"]), [2, 0]);
    client.int("RLOCK.RELEASE k a");
    client.int("RLOCK.RELEASE doc a READ");
    assert_eq!(told(&mut client, ["held", "held_max_ms"]), [0, 0]);
    // With a token of its own it counts from there.
    client.int("HSET k a 1");
    client.int("PEXPIRE k 100000");
    client.token("RLOCK.ACQUIRE k a 100000");
    pass(now_ms() + 50);
    assert!(client.counter("rlock_oldest_hold_ms") >= 50);
}

#[test]
fn the_last_minute_goes_by() {
    let clock = Clock::new();
    let Some(server) = Server::start_by(&clock, &[]) else {
        return;
    };
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 100000");
    let mut waiter = Waiter::new(&server, "k", "b");
    pass(now_ms() + 50);
    client.int("RLOCK.RELEASE k a");
    waiter.token();
    let names = ["held_max_ms", "held_max_last_minute_ms"];
    let holds = told(&mut client, names);
    assert!(holds[0] >= 50 && holds[1] == holds[0], "{holds:?}");
    let names = ["wait_max_us", "wait_max_last_minute_us"];
    let waits = told(&mut client, names);
    assert!(waits[0] >= 10_000 && waits[1] == waits[0], "{waits:?}");
    clock.set_off(75_000);
    eventually("a minute is over", || {
        told(
            &mut client,
            ["held_max_last_minute_ms", "wait_max_last_minute_us"],
        ) == [0, 0]
    });
    assert_eq!(client.counter("rlock_held_max_ms"), holds[0]);
    assert_eq!(client.counter("rlock_wait_max_us"), waits[0]);
}

#[test]
fn a_server_that_turns_replica_holds_nothing() {
    let (master, server) = (Server::start(), Server::start());
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 100000");
    client.token("RLOCK.ACQUIRE doc a 100000 READ WATCHDOG");
    let mut client = server.raw();
    pass(now_ms() + 50);
    client.ok(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    eventually("it knows of none", || {
        told(&mut client, ["held", "oldest_hold_ms", "watchdog_holds"]) == [0, 0, 0]
    });
    assert!(client.counter("rlock_held_max_ms") >= 50);
}
