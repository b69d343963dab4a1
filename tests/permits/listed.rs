//! Permits as an operator sees them: INFO, WAITERS, TOP, LIST, FORCE, the gauges.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::{
    bulk, eventually, int, list, longest, map, now_ms, pass, Ask, Bound, Permits, RawClient,
    Server, Way, LONG,
};

/// The maps under a name of a reply, or those of the reply itself.
#[track_caller]
fn maps(reply: Value) -> Vec<BTreeMap<String, Value>> {
    list(reply).into_iter().map(map).collect()
}

#[test]
fn info_shows_the_limit_what_is_available_and_who_has_how_many() {
    let server = Server::start();
    let mut client = server.raw();
    let bound = Bound::with(&server, &format!("k b {LONG} LIMIT 9 PERMITS 3"));
    let token = client.take_permits("k", "a", "LIMIT 9 PERMITS 2");
    client.int("RLOCK.LIMIT k 7");
    let _waiter = Way::Block.permits(&server, "k", "c", "LIMIT 9 PERMITS 7");
    let told = client.map("RLOCK.INFO k");
    let names: Vec<&str> = told.keys().map(String::as_str).collect();
    let expected = [
        "asked-limit",
        "available",
        "holders",
        "limit",
        "mode",
        "oldest-wait-ms",
        "waiters",
    ];
    assert_eq!(names, expected);
    assert_eq!(told["mode"], bulk("permits"));
    let pool = Permits {
        limit: 7,
        asked: 9,
        available: 2,
    };
    assert_eq!(client.pool("k"), pool);
    let holders = maps(told["holders"].clone());
    let names: Vec<&str> = holders[0].keys().map(String::as_str).collect();
    let expected = [
        "held-ms",
        "mode",
        "owner",
        "permits",
        "remaining-ms",
        "token",
        "wanted-ms",
        "watchdog",
    ];
    assert_eq!(names, expected);
    let found = client.info("k");
    assert_eq!(found.waiters, 1);
    assert_eq!(found.held_by(), "a permits 2, b permits 3");
    let (a, b) = (&found.holders[0], &found.holders[1]);
    assert_eq!((a.token, a.watchdog), (Some(token), None));
    assert_eq!((b.token, b.watchdog), (Some(bound.token), Some(bound.id)));
    for hold in &found.holders {
        let left = hold.remaining_ms.expect("a lease");
        assert!((1..=longest(LONG)).contains(&left), "{left}");
        assert!(hold.held_ms.is_some());
    }
    // A lock without permits has none of it.
    client.take("plain", "a");
    let told = client.map("RLOCK.INFO plain");
    assert!(!told.contains_key("limit") && !told.contains_key("available"));
    // Nothing was changed by it, and it works on a free one.
    client.is_free("free");
    assert!(!client.map("RLOCK.INFO free").contains_key("limit"));
}

#[test]
fn info_leaves_out_those_whose_lease_is_over() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 9");
    client.int("RLOCK.ACQUIRE k a 1000 LIMIT 9");
    let ends = client.permits_end("k", "a");
    // The server takes nothing out of the hash meanwhile.
    client.ok("CLIENT PAUSE 3000 WRITE");
    pass(ends + 1);
    assert_eq!(client.held_by("k"), "b permits 1");
    assert!(client.hash("k").contains(" b="), "{}", client.hash("k"));
    client.ok("CLIENT UNPAUSE");
    client.permits_become("k", "b=1 mode=permits 9 9 1");
}

#[test]
fn info_shows_at_most_so_many_holders() {
    let server = Server::start();
    let mut client = server.raw();
    for n in 0..30 {
        client.take_permits("k", &format!("o{n:02}"), "LIMIT 99");
    }
    for (words, count) in [("", 30), ("COUNT 1", 1), ("count 7", 7), ("COUNT 1000", 30)] {
        let told = client.map(&format!("RLOCK.INFO k {words}"));
        assert_eq!(list(told["holders"].clone()).len(), count, "{words}");
        assert_eq!(told["available"], Value::Int(69));
    }
    for bad in ["COUNT", "COUNT 0", "COUNT x", "COUNT 1 COUNT 1", "5"] {
        let line = client.error(&format!("RLOCK.INFO k {bad}"));
        assert!(line.starts_with("ERR "), "{bad}: {line}");
    }
}

#[test]
fn waiters_and_top_show_those_who_wait() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "x", "LIMIT 4 PERMITS 4");
    let _permits = Way::Block.permits(&server, "k", "a", "LIMIT 4 PERMITS 3");
    let _queued = Way::Queue.permits(&server, "k", "b", "LIMIT 4");
    let _read = Way::Block.read(&server, "k", "c");
    let entries = maps(client.ask("RLOCK.WAITERS k"));
    let names: Vec<&str> = entries[0].keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["client-id", "mode", "owner", "permits", "waited-ms"]
    );
    let permits: Vec<_> = entries.iter().map(|entry| entry.get("permits")).collect();
    assert_eq!(permits, [Some(&Value::Int(3)), Some(&Value::Int(1)), None]);
    assert_eq!(entries[1]["mode"], bulk("permits"));
    let top = maps(client.ask("RLOCK.TOP")).remove(0);
    assert_eq!((&top["key"], &top["waiters"]), (&bulk("k"), &Value::Int(3)));
}

/// The owners on a page, and with how many permits.
#[track_caller]
fn listed(client: &mut RawClient, words: &str) -> Vec<(String, i64)> {
    let mut page = client.list(&format!("RLOCK.LIST {words}"));
    maps(page.remove(1))
        .iter()
        .map(|told| {
            assert_eq!(told["mode"], bulk("permits"));
            let owner = crate::support::text(told["owner"].clone());
            (owner, int(told["permits"].clone()))
        })
        .collect()
}

#[test]
fn list_shows_each_owner_of_each_lock() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a:1", "LIMIT 4 PERMITS 2");
    client.take_permits("k", "b:1", "LIMIT 4");
    client.take_permits("other", "a:2", "LIMIT 9");
    let since = now_ms();
    let of = |owner: &str, count| (owner.to_owned(), count);
    let mut all = listed(&mut client, "COUNT 100");
    all.sort();
    assert_eq!(all, [of("a:1", 2), of("a:2", 1), of("b:1", 1)]);
    assert_eq!(listed(&mut client, "MATCH k OWNER a:"), [of("a:1", 2)]);
    pass(since + 300);
    client.take_permits("k", "c:1", "LIMIT 4");
    let mut long = listed(&mut client, "MATCH k HELD-LONGER 200");
    long.sort();
    assert_eq!(long, [of("a:1", 2), of("b:1", 1)]);
    client.give_back("k", "a:1", 2);
    assert_eq!(listed(&mut client, "MATCH k OWNER a:"), []);
}

#[test]
fn force_means_one_of_the_holders_and_frees_all() {
    let server = Server::start();
    let mut client = server.raw();
    let hold = |client: &mut RawClient| {
        let shares = [("a", 1), ("b", 2), ("b", 1)];
        shares.map(|(owner, n)| client.take_permits("k", owner, &format!("LIMIT 4 PERMITS {n}")))
    };
    let tokens = hold(&mut client);
    let before = client.state(b"k");
    for aim in [
        "IFOWNER c",
        "IFTOKEN 7",
        &format!("IFTOKEN {}", tokens[2] + 1),
    ] {
        assert_eq!(client.int(&format!("RLOCK.FORCE k {aim}")), 0, "{aim}");
    }
    assert_eq!(client.state(b"k"), before);
    assert_eq!(client.int("RLOCK.FORCE k IFOWNER b"), 1);
    client.nothing_left("k");
    for number in 0..3 {
        let token = hold(&mut client)[number];
        assert_eq!(
            client.int(&format!("RLOCK.FORCE k IFTOKEN {token}")),
            1,
            "{number}"
        );
        client.nothing_left("k");
    }
}

#[test]
fn the_gauges_count_the_lock_once_and_each_watched_permit() {
    let server = Server::start();
    let mut client = server.raw();
    let held = |client: &mut RawClient| client.counter("rlock_held");
    for (request, count) in [
        ("RLOCK.ACQUIRE k a 100000 LIMIT 4 PERMITS 2", 1),
        ("RLOCK.ACQUIRE k b 100000 LIMIT 4", 1),
        ("RLOCK.ACQUIRE l b 100000 LIMIT 4", 2),
        ("RLOCK.RELEASE k a PERMITS", 2),
        ("RLOCK.LIMIT k 9", 2),
        ("RENAME k m", 2),
        ("RLOCK.RELEASE m a PERMITS", 2),
        ("RLOCK.RELEASE m b PERMITS", 1),
        ("RLOCK.RENEW l b 300 PERMITS", 1),
    ] {
        client.ask(request);
        eventually(request, || held(&mut client) == count);
    }
    eventually("its lease is over", || held(&mut client) == 0);
    let before = client.counters();
    let bound = Bound::with(&server, &format!("k a {LONG} LIMIT 9 PERMITS 3"));
    client.take_permits("k", "a", "LIMIT 9");
    pass(now_ms() + 50);
    assert_eq!(client.counter("rlock_watchdog_holds"), 3);
    assert!(client.counter("rlock_oldest_hold_ms") >= 50);
    drop(bound);
    eventually("it is closed", || {
        client.counter("rlock_watchdog_holds") == 0
    });
    client.permits_become("k", "a=1 mode=permits 9 9 1");
    client.give_back("k", "a", 1);
    let after = client.counters();
    let more = |name: &str| after[name] - before[name];
    assert_eq!(more("rlock_acquired"), 2);
    assert_eq!(more("rlock_released"), 2);
    assert_eq!(after["rlock_held"], 0);
}
