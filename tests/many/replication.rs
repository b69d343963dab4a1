//! What replicas, the AOF and listeners get of many locks at once.

use crate::support::{
    aof, both_ways, eventually, lease_from, now_ms, same_on_both, Ask, Listener, Server, Way, AOF,
    LONG,
};

both_ways!(a_replica_has_the_same_locks_to_the_millisecond);
fn a_replica_has_the_same_locks_to_the_millisecond(by: Way) {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut here, mut there) = (master.raw(), replica.raw());
    for request in [
        "RLOCK.MACQUIRE 3 x y z alice 60000",
        "RLOCK.MACQUIRE 2 x y alice 90000",
        "RLOCK.MRENEW 3 x y z alice 30000",
        "RLOCK.MRELEASE 3 x y z alice",
        "RLOCK.MRELEASE 3 x y z alice",
        "RLOCK.MACQUIRE 2 a y bob 9007199254740991",
    ] {
        here.int(request);
        same_on_both(&mut here, &mut there, request);
    }
    let mut waits = by.many(&master, "x y", "m");
    same_on_both(&mut here, &mut there, "a request that waits");
    here.int("RLOCK.MRELEASE 2 a y bob");
    waits.token();
    same_on_both(&mut here, &mut there, "a grant");
    let mut waits = by.many(&master, "x y z", "n");
    here.int("RLOCK.MRENEW 2 x y m 60");
    waits.token();
    same_on_both(&mut here, &mut there, "leases that ended");
    let mut waits = by.many(&master, "z y", "o");
    here.int("DEL x y z");
    waits.token();
    same_on_both(&mut here, &mut there, "keys that went");
    assert_eq!(there.hash("z"), "o=1");
}

/// The names of the commands in the AOF.
#[track_caller]
fn names(server: &Server) -> Vec<String> {
    let commands = aof(server).into_iter();
    commands.map(|words| words[0].to_uppercase()).collect()
}

both_ways!(the_aof_holds_plain_commands_all_keys_as_one);
fn the_aof_holds_plain_commands_all_keys_as_one(by: Way) {
    let mut server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE held bob 3600000");
    let mut seen = names(&server).len();
    let mut as_one = |keys: usize, what: &str| {
        let all = names(&server);
        let new = &all[seen..];
        seen = all.len();
        assert!(new.len() >= keys + 2, "{what}: {new:?}");
        assert_eq!(new[0], "MULTI", "{what}: {new:?}");
        let end = new.iter().position(|name| name == "EXEC");
        assert_eq!(end, Some(new.len() - 1), "{what}: {new:?}");
        for name in &new[1..new.len() - 1] {
            let plain = ["RESTORE", "HSET", "PEXPIREAT", "DEL"];
            assert!(plain.contains(&name.as_str()), "{what}: {new:?}");
        }
    };
    for request in [
        "RLOCK.MACQUIRE 3 x y z alice 3600000",
        "RLOCK.MACQUIRE 2 z y alice 1000",
        "RLOCK.MRENEW 3 x y z alice 7200000",
        "RLOCK.MRELEASE 2 y z alice",
        "RLOCK.MRELEASE 2 z y alice",
    ] {
        client.int(request);
        as_one(2, request);
    }
    let mut waits = by.many(&server, "held y z", "m");
    client.int("RLOCK.RELEASE held bob");
    waits.token();
    as_one(3, "a grant");
    let none = [
        "RLOCK.MACQUIRE 2 x a carol 1000",
        "RLOCK.MACQUIRE 2 a x carol 1000 BLOCK 2",
        "RLOCK.MRELEASE 2 x a carol",
        "RLOCK.MRENEW 2 x a alice 1000",
        "RLOCK.MACQUIRE 2 a x carol 1000 ONCE",
    ];
    let before = names(&server);
    for request in none {
        client.ask(request);
        assert_eq!(names(&server), before, "{request}");
    }

    let before = client.everything();
    drop((client, waits));
    server.kill();
    server.start_again();
    let mut client = server.raw();
    assert_eq!(client.everything(), before);
    assert_eq!(client.int("RLOCK.MRELEASE 4 held x y z m"), 3);
    assert_eq!(client.int("RLOCK.MRELEASE 2 x y alice"), 1);
    assert_eq!(client.int("DBSIZE"), 0);
}

/// What rlock told since the last call, as (event, key), by key.
#[track_caller]
fn told(events: &mut Listener) -> Vec<(String, String)> {
    let mut all = events.events();
    all.retain(|(event, _)| event.starts_with("rlock."));
    all.sort_by(|one, other| one.1.cmp(&other.1));
    all
}

fn of(event: &str, keys: &[&str]) -> Vec<(String, String)> {
    let event = format!("rlock.{event}");
    keys.iter()
        .map(|key| (event.clone(), (*key).to_owned()))
        .collect()
}

both_ways!(events_are_one_per_call_and_key);
fn events_are_one_per_call_and_key(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    for (request, event, keys) in [
        (
            "RLOCK.MACQUIRE 3 x z y alice 60000",
            "acquired",
            ["x", "y", "z"].as_slice(),
        ),
        ("RLOCK.MACQUIRE 2 y x alice 60000", "acquired", &["x", "y"]),
        (
            "RLOCK.MRENEW 3 x z y alice 60000",
            "renewed",
            &["x", "y", "z"],
        ),
        (
            "RLOCK.MRELEASE 4 x a z y alice",
            "released",
            &["x", "y", "z"],
        ),
        ("RLOCK.MRELEASE 3 x y z alice", "released", &["x", "y"]),
        ("RLOCK.MRELEASE 3 x y z alice", "", &[]),
        ("RLOCK.MACQUIRE 2 x y bob 60000", "acquired", &["x", "y"]),
        ("RLOCK.MACQUIRE 3 z x y carol 60000", "", &[]),
        ("RLOCK.MACQUIRE 3 z x y carol 60000 BLOCK 3", "", &[]),
        ("RLOCK.MRENEW 3 x y z bob 1000", "", &[]),
    ] {
        client.ask(request);
        assert_eq!(told(&mut events), of(event, keys), "{request}");
    }
    let mut waits = by.many(&server, "x y z", "m");
    assert_eq!(told(&mut events), [], "a request that waits");
    client.int("RLOCK.RELEASE x bob");
    assert_eq!(told(&mut events), of("released", &["x"]));
    client.int("RLOCK.RELEASE y bob");
    waits.token();
    let mut expected = of("acquired", &["x", "y", "z"]);
    expected.insert(1, of("released", &["y"]).remove(0));
    assert_eq!(told(&mut events), expected);
}

#[test]
fn each_key_whose_lease_ran_out_is_announced_once() {
    let server = Server::start();
    let mut client = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let (_, ends) = lease_from(200, || client.int("RLOCK.MACQUIRE 3 x y z alice 200"));
    client.int(&format!("RLOCK.RENEW y alice {LONG}"));
    client.int("RLOCK.ACQUIRE last x 400");
    let mut seen = Vec::new();
    eventually("the last one is over", || {
        seen.extend(told(&mut events));
        seen.contains(&of("expired", &["last"])[0])
    });
    assert!(now_ms() >= *ends.start());
    seen.retain(|(event, _)| event == "rlock.expired");
    seen.sort();
    assert_eq!(seen, of("expired", &["last", "x", "z"]));
}

#[test]
fn redissons_waiters_are_woken_on_each_key_that_is_left_free() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.int("RLOCK.MACQUIRE 3 x y z alice 60000");
    client.int("RLOCK.ACQUIRE z alice 60000");
    assert_eq!(client.int("RLOCK.MRELEASE 3 x y z alice"), 3);
    let mut messages = heard.messages();
    messages.sort();
    let message = |key: &str| (format!("redisson_lock__channel:{{{key}}}"), "0".to_owned());
    assert_eq!(messages, [message("x"), message("y")]);
}
