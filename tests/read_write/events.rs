//! Keyspace notifications of read/write locks: one per call on the lock's key, and
//! one for each reader whose lease ran out.

use crate::support::{both_ways, eventually, lease_key, Ask, Listener, Server, Way};

/// What rlock told since the last call, as (event, key).
#[track_caller]
fn told(events: &mut Listener) -> Vec<(String, String)> {
    let mut all = events.events();
    all.retain(|(event, _)| event.starts_with("rlock."));
    all
}

fn of(events: &[&str]) -> Vec<(String, String)> {
    let one = |event: &&str| (format!("rlock.{event}"), "doc".to_owned());
    events.iter().map(one).collect()
}

/// Collects until so many were told; then waits for nothing more.
#[track_caller]
fn collect(events: &mut Listener, count: usize) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    eventually("all is told", || {
        seen.extend(told(events));
        seen.len() >= count
    });
    seen
}

#[test]
fn each_change_is_announced_once_on_the_locks_key() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    for (request, expected) in [
        ("RLOCK.ACQUIRE doc alice 60000 READ", "acquired"),
        ("RLOCK.ACQUIRE doc alice 90000 READ", "acquired"),
        ("RLOCK.ACQUIRE doc bob 60000 READ", "acquired"),
        ("RLOCK.RENEW doc alice 30000 READ", "renewed"),
        ("RLOCK.RELEASE doc alice READ", "released"),
        ("RLOCK.RELEASE doc alice READ", "released"),
        ("RLOCK.ACQUIRE doc bob 60000 WRITE", "acquired"),
        ("RLOCK.ACQUIRE doc bob 60000 WRITE", "acquired"),
        ("RLOCK.RENEW doc bob 60000 WRITE", "renewed"),
        ("RLOCK.RELEASE doc bob WRITE ALL", "released"),
        ("RLOCK.RELEASE doc bob READ", "released"),
        ("RLOCK.ACQUIRE doc alice 60000 WRITE", "acquired"),
        ("RLOCK.ACQUIRE doc alice 60000 READ", "acquired"),
        ("RLOCK.FORCE doc", "forced"),
    ] {
        client.int(request);
        assert_eq!(told(&mut events), of(&[expected]), "{request}");
    }
}

#[test]
fn what_changes_nothing_is_not_announced() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut events = Listener::keyspace(&server, 0);
    for request in [
        "RLOCK.ACQUIRE doc w 1000 WRITE",
        "RLOCK.ACQUIRE doc w 1000 WRITE BLOCK 2",
        "RLOCK.ACQUIRE doc alice 1000 WRITE",
        "RLOCK.ACQUIRE doc alice 1000",
        "RLOCK.RELEASE doc alice WRITE",
        "RLOCK.RELEASE doc w READ",
        "RLOCK.RENEW doc w 1000 READ",
        "RLOCK.INFO doc",
    ] {
        client.ask(request);
        assert_eq!(events.events(), [], "{request}");
    }
}

both_ways!(a_grant_is_announced_after_what_caused_it);
fn a_grant_is_announced_after_what_caused_it(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let mut writer = by.write(&server, "doc", "w");
    let mut events = Listener::keyspace(&server, 0);
    client.int("RLOCK.RELEASE doc alice WRITE");
    for reader in &mut readers {
        reader.token();
    }
    assert_eq!(told(&mut events), of(&["released", "acquired", "acquired"]));
    client.int("RLOCK.RELEASE doc a READ");
    client.int("RLOCK.RELEASE doc b READ");
    writer.token();
    assert_eq!(told(&mut events), of(&["released", "released", "acquired"]));
}

#[test]
fn each_readers_lease_that_ran_out_is_announced_once() {
    const READERS: usize = 20;
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "stays");
    for n in 0..READERS {
        // Nested holds of one owner are one lease.
        client.take_read("doc", &format!("r{n}"));
        client.take_read("doc", &format!("r{n}"));
    }
    let mut events = Listener::keyspace(&server, 0);
    let renew: Vec<String> = (0..READERS)
        .map(|n| format!("RLOCK.RENEW doc r{n} {} READ", 30 + 10 * n))
        .collect();
    for request in &renew {
        client.int(request);
    }
    let seen = collect(&mut events, 2 * READERS);
    let count = |event: &str| seen.iter().filter(|one| **one == of(&[event])[0]).count();
    assert_eq!(count("renewed"), READERS);
    assert_eq!(count("expired"), READERS);
    assert_eq!(seen.len(), 2 * READERS, "{seen:?}");

    // The last one's, with which the lock goes; one that ends later than anything
    // that could still come.
    client.int("RLOCK.RENEW doc stays 100 READ");
    assert_eq!(collect(&mut events, 2), of(&["renewed", "expired"]));
    client.int("RLOCK.ACQUIRE last x 100");
    let seen = collect(&mut events, 2);
    assert!(seen.iter().all(|(_, key)| key == "last"), "{seen:?}");
    eventually("nothing is left", || client.int("DBSIZE") == 0);
}

#[test]
fn a_lease_of_both_modes_runs_out_once() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    client.succeed(&[
        "RLOCK.ACQUIRE doc alice 60000 WRITE",
        "RLOCK.ACQUIRE doc alice 60000 READ",
        "RLOCK.RENEW doc alice 100 WRITE",
    ]);
    let expected = of(&["acquired", "acquired", "renewed", "expired"]);
    assert_eq!(collect(&mut events, 4), expected);
    client.int("RLOCK.ACQUIRE last x 100");
    let seen = collect(&mut events, 2);
    assert!(seen.iter().all(|(_, key)| key == "last"), "{seen:?}");
}

#[test]
fn what_ended_otherwise_did_not_expire() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let del = format!("DEL {}", lease_key("del", "alice", 1));
    let take = |key: &str| format!("RLOCK.ACQUIRE {key} alice 200 READ");
    client.succeed(&[
        take("released").as_str(),
        &take("all"),
        &take("forced"),
        &take("gone"),
        &take("del"),
        &take("longer"),
        "RLOCK.ACQUIRE down alice 200 WRITE",
        "RLOCK.RELEASE released alice READ",
        "RLOCK.RELEASE all alice READ ALL",
        "RLOCK.FORCE forced",
        "DEL gone",
        &del,
        "RLOCK.RENEW longer alice 60000 READ",
        "RLOCK.RELEASE down alice WRITE",
        "RLOCK.ACQUIRE last alice 500",
    ]);
    let mut expired = Vec::new();
    eventually("the last one is over", || {
        let more = told(&mut events);
        expired.extend(
            more.into_iter()
                .filter(|(event, _)| event == "rlock.expired"),
        );
        expired.iter().any(|(_, key)| key == "last")
    });
    assert_eq!(expired.len(), 1, "{expired:?}");
}

#[test]
fn the_servers_own_events_are_of_the_lock_as_of_any_key() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let names = |events: &mut Listener| -> Vec<String> {
        let mut all = events.events();
        all.retain(|(event, key)| key == "doc" && !event.starts_with("rlock."));
        all.into_iter().map(|(event, _)| event).collect()
    };
    client.take_read("doc", "alice");
    let seen = names(&mut events);
    assert!(seen.contains(&"hset".to_owned()), "{seen:?}");
    assert!(seen.contains(&"expire".to_owned()), "{seen:?}");
    client.int("RLOCK.RELEASE doc alice READ");
    let seen = names(&mut events);
    let times = seen.iter().filter(|event| *event == "del").count();
    assert_eq!((times, seen.last().map(String::as_str)), (1, Some("del")));
    client.int("RLOCK.ACQUIRE doc alice 60 WRITE");
    let mut seen = Vec::new();
    eventually("the lease is over", || {
        seen.extend(names(&mut events));
        seen.contains(&"expired".to_owned())
    });
    let times = seen.iter().filter(|event| *event == "expired").count();
    assert_eq!(times, 1, "{seen:?}");
}
