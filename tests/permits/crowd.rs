//! 100,000 owners of one lock: what one of them does costs no more than where there are few,
//! and all are known again after a restart.

use std::collections::BTreeMap;

use crate::support::{
    eventually, eventually_within, int, list, map, now_ms, pass, text, Ask, RawClient, Server,
    BOUND, LONG,
};

const OWNERS: usize = 100_000;

/// So many owners with a permit each, of the greatest limit.
#[track_caller]
fn fill(client: &mut RawClient, key: &str, owners: usize, lease: i64) {
    for part in (0..owners).collect::<Vec<_>>().chunks(5000) {
        let lines: Vec<String> = part
            .iter()
            .map(|n| format!("RLOCK.ACQUIRE {key} o{n:06} {lease} LIMIT 1000000"))
            .collect();
        client.succeed(&lines);
    }
    assert_eq!(client.int(&["HLEN", key]), owners as i64 + 1);
}

/// How many us the server has spent on a call, of those since the last reset.
#[track_caller]
fn us_per_call(client: &mut RawClient, command: &str) -> f64 {
    let info = client.text("INFO commandstats");
    let name = format!("cmdstat_{command}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&name));
    let mut words = line.expect("it was called").split(',');
    let per_call = words.find_map(|word| word.strip_prefix("usec_per_call="));
    per_call.expect("a mean").parse().expect("a number")
}

#[test]
fn one_of_very_many_costs_little() {
    let server = Server::start();
    let mut client = server.raw();
    fill(&mut client, "many", OWNERS, 3_600_000);
    fill(&mut client, "few", 10, 3_600_000);
    for key in ["few", "many"] {
        client.ok("CONFIG RESETSTAT");
        for n in 0..300 {
            let owner = format!("new{n}");
            client.token(&format!(
                "RLOCK.ACQUIRE {key} {owner} {LONG} LIMIT 1000000 PERMITS 2"
            ));
            assert_eq!(
                client.int(&format!("RLOCK.RENEW {key} {owner} {LONG} PERMITS")),
                1
            );
            assert_eq!(client.give_back(key, &owner, 1), 1);
            assert_eq!(client.give_back(key, &owner, 1), 0);
        }
        for command in ["rlock.acquire", "rlock.renew", "rlock.release"] {
            let us = us_per_call(&mut client, command);
            println!("{key} {command}: {us} us");
            // To go through all of them would take ten times as long, at the least.
            assert!(us < 2000.0, "{key} {command}: {us} us");
        }
    }
    let mode = format!("permits 1000000 1000000 {OWNERS}");
    assert_eq!(client.text("HGET many mode"), mode);

    let told = |client: &mut RawClient, words: &str| {
        let info = client.map(&format!("RLOCK.INFO many {words}"));
        list(info["holders"].clone()).len()
    };
    assert_eq!(told(&mut client, ""), 1000);
    assert_eq!(told(&mut client, "COUNT 10"), 10);
    assert_eq!(told(&mut client, "COUNT 1"), 1);
    assert_eq!(told(&mut client, "COUNT 5000"), 5000);
    assert_eq!(client.pool("many").available, 1_000_000 - OWNERS as i64);
    assert_eq!(client.int("RLOCK.FORCE many"), 1);
    client.is_free("many");
}

/// How often each owner is told of on all pages.
#[track_caller]
fn listed(client: &mut RawClient) -> BTreeMap<String, usize> {
    let (mut cursor, mut all) = ("0".to_owned(), BTreeMap::new());
    loop {
        let mut page = client.list(&format!("RLOCK.LIST CURSOR {cursor} COUNT 250"));
        for holder in list(page.remove(1)).into_iter().map(map) {
            assert_eq!(text(holder["mode"].clone()), "permits");
            assert_eq!(int(holder["permits"].clone()), 1);
            assert_eq!(int(holder["presumed"].clone()), 0);
            *all.entry(text(holder["owner"].clone())).or_insert(0) += 1;
        }
        cursor = text(page.remove(0));
        if cursor == "0" {
            return all;
        }
    }
}

/// All are known after a while, and each is listed once.
#[track_caller]
fn all_are_known(server: &Server, owners: usize) {
    let mut client = server.raw();
    let mut all = BTreeMap::new();
    eventually_within(3 * BOUND, "all are known", || {
        all = listed(&mut client);
        all.len() == owners
    });
    assert!(all.values().all(|times| *times == 1));
}

#[test]
fn all_are_known_after_a_load() {
    let mut server = Server::start();
    let mut client = server.raw();
    fill(&mut client, "many", OWNERS, 3_600_000);
    all_are_known(&server, OWNERS);
    client.ok("DEBUG RELOAD");
    all_are_known(&server, OWNERS);
    client.ok("SAVE");
    server.restart();
    all_are_known(&server, OWNERS);
    let mut client = server.raw();
    assert_eq!(client.counter("rlock_held"), 1);
    assert_eq!(client.give_back("many", "o000007", 1), 0);
    let mode = format!("permits 1000000 1000000 {}", OWNERS - 1);
    assert_eq!(client.text("HGET many mode"), mode);
    assert_eq!(listed(&mut client).len(), OWNERS - 1);
}

/// Leases of which some end while the server is down, and some when it is there again.
#[test]
fn each_lease_ends_in_time_after_a_restart() {
    // On a machine that is too busy all has to last longer.
    let in_time = [5_000, 30_000].into_iter().any(end_after_a_restart);
    assert!(in_time, "this machine is too slow for the test");
}

/// Half of the leases end in so many ms, the rest later. Whether the server was down and
/// up again in time.
fn end_after_a_restart(ms: i64) -> bool {
    const HALF: usize = 5000;
    let mut server = Server::start();
    let mut client = server.raw();
    let down = now_ms() + ms;
    let up = down + ms / 5 * 8;
    let take = |n: usize| {
        let lease = ([down, up][n % 2] - now_ms()).max(1);
        format!("RLOCK.ACQUIRE k o{n:06} {lease} LIMIT 1000000")
    };
    for part in 0..10 {
        let part = part * HALF / 5..(part + 1) * HALF / 5;
        client.succeed(&part.map(take).collect::<Vec<_>>());
    }
    client.take_permits("k", "stays", "LIMIT 1000000");
    if now_ms() >= down {
        return false;
    }
    client.ok("SAVE");
    server.kill();
    pass(down + 1);
    server.start_again();
    let mut client = server.raw();
    let out = |client: &mut RawClient| {
        let mode = client.text("HGET k mode");
        mode.rsplit(' ')
            .next()
            .expect("out")
            .parse::<usize>()
            .expect("a number")
    };
    eventually("the first half has ended", || out(&mut client) <= HALF + 1);
    let left = out(&mut client);
    if now_ms() >= up {
        return false;
    }
    assert_eq!(left, HALF + 1);
    eventually("all but one have ended", || out(&mut client) == 1);
    let late = now_ms() - up;
    assert!(
        (0..BOUND.as_millis() as i64).contains(&late),
        "{late} ms late"
    );
    assert_eq!(
        client.permits("k"),
        "mode=permits 1000000 1000000 1 stays=1"
    );
    assert_eq!(client.counter("rlock_expired"), 2 * HALF as i64);
    true
}
