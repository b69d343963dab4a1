//! Which arguments of a request for many keys are keys: for the server, for ACLs,
//! and in a cluster.

use crate::support::{
    both_ways, bulk, cluster, error, eventually, eventually_within, user, Ask, Server, Way, BOUND,
    LONG,
};

#[test]
fn the_server_knows_which_arguments_are_keys() {
    let server = Server::start();
    let mut client = server.raw();
    for (request, expected) in [
        ("RLOCK.MACQUIRE 1 x alice 1000", ["x"].as_slice()),
        ("RLOCK.MACQUIRE 2 x y alice 1000 BLOCK 0 ONCE", &["x", "y"]),
        ("RLOCK.MACQUIRE 3 z y x alice 1000", &["z", "y", "x"]),
        ("RLOCK.MRELEASE 1 x alice", &["x"]),
        ("RLOCK.MRELEASE 3 x y z alice", &["x", "y", "z"]),
        ("RLOCK.MRENEW 2 y x alice 1000", &["y", "x"]),
    ] {
        let keys = client.texts(&format!("COMMAND GETKEYS {request}"));
        assert_eq!(keys, expected, "{request}");
    }
    let keys: Vec<String> = (0..1024).map(|n| format!("k{n}")).collect();
    let request = format!("RLOCK.MACQUIRE 1024 {} alice 1000", keys.join(" "));
    assert_eq!(client.texts(&format!("COMMAND GETKEYS {request}")), keys);
}

/// The server looks for the number of keys before the command runs.
#[test]
fn a_request_that_ends_before_the_number_of_keys_is_refused_and_no_crash() {
    let server = Server::start();
    let mut admin = server.raw();
    let mut worker = user(&server, "+@all ~a*");
    let clustered = cluster();
    let mut anybody = clustered.raw();
    for command in ["RLOCK.MACQUIRE", "RLOCK.MRELEASE", "RLOCK.MRENEW"] {
        let script = format!("return redis.pcall('{command}')");
        let line = worker.error(command);
        assert!(line.starts_with("ERR wrong number of arguments"), "{line}");
        for refused in [
            worker.ask(&["EVAL", &script, "0"]),
            worker.ask(&format!("ACL DRYRUN worker {command}")),
            admin.ask(&format!("COMMAND GETKEYS {command}")),
            admin.ask(&format!("COMMAND GETKEYSANDFLAGS {command}")),
            anybody.ask(command),
        ] {
            error(refused);
        }
    }
    server.alive();
    clustered.alive();
}

#[test]
fn a_users_key_patterns_apply_to_each_key() {
    let server = Server::start();
    let mut admin = server.raw();
    admin.int(&format!("RLOCK.MACQUIRE 2 b1 b2 alice {LONG}"));
    let before = admin.everything();
    let mut worker = user(&server, "+@all ~a*");
    for keys in ["2 a1 b1", "2 b1 a1", "3 a1 a2 b2", "2 b1 b2", "1 b1"] {
        for (command, rest) in [
            ("RLOCK.MACQUIRE", "alice 60000"),
            ("RLOCK.MACQUIRE", "bob 60000 BLOCK 0"),
            ("RLOCK.MRENEW", "alice 60000"),
            ("RLOCK.MRELEASE", "alice"),
        ] {
            let line = worker.error(&format!("{command} {keys} {rest}"));
            assert!(line.starts_with("NOPERM "), "{command} {keys}: {line}");
        }
    }
    assert_eq!(admin.everything(), before);
    for key in ["a1", "a2"] {
        admin.is_free(key);
    }
    worker.int("RLOCK.MACQUIRE 2 a1 a2 alice 60000");
    assert_eq!(worker.int("RLOCK.MRENEW 2 a1 a2 alice 60000"), 1);
    assert_eq!(worker.int("RLOCK.MRELEASE 2 a1 a2 alice"), 2);
}

both_ways!(when_memory_is_full_many_can_be_kept_and_freed_but_not_taken);
fn when_memory_is_full_many_can_be_kept_and_freed_but_not_taken(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.MACQUIRE 2 x y alice 60000");
    let mut waits = by.many(&server, "x z", "m");
    client.ok("CONFIG SET maxmemory 1");
    for request in [
        "RLOCK.MACQUIRE 2 a b carol 60000",
        "RLOCK.MACQUIRE 2 x y alice 60000",
        "RLOCK.MACQUIRE 2 x a carol 60000 BLOCK 0",
    ] {
        let line = client.error(request);
        assert!(line.starts_with("OOM "), "{request}: {line}");
    }
    assert_eq!(client.int("RLOCK.MRENEW 2 x y alice 90000"), 1);
    assert_eq!(client.int("RLOCK.MRELEASE 2 x y alice"), 2);
    // Those who wait already are granted all the same.
    waits.token();
    client.ok("CONFIG SET maxmemory 0");
    assert_eq!(client.int("RLOCK.MRELEASE 2 x z m"), 2);
}

#[test]
fn a_replica_changes_none() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut client = replica.raw();
    master.raw().int("RLOCK.MACQUIRE 2 x y alice 60000");
    eventually("the locks are there", || client.int("EXISTS x y") == 2);
    for request in [
        "RLOCK.MACQUIRE 2 x y alice 60000",
        "RLOCK.MACQUIRE 2 a b alice 60000 BLOCK 0",
        "RLOCK.MRENEW 2 x y alice 60000",
        "RLOCK.MRELEASE 2 x y alice",
    ] {
        let line = client.error(request);
        assert!(line.starts_with("READONLY "), "{request}: {line}");
    }
}

#[test]
fn in_a_cluster_all_keys_are_of_one_slot() {
    let server = cluster();
    let mut client = server.raw();
    let (x, y) = ("CLUSTER KEYSLOT x", "CLUSTER KEYSLOT y");
    assert_ne!(client.int(x), client.int(y));
    for keys in ["2 x y", "3 {x}1 {x}2 y", "2 {x}1 {y}1"] {
        for (command, rest) in [
            ("RLOCK.MACQUIRE", "alice 60000"),
            ("RLOCK.MACQUIRE", "alice 60000 BLOCK 0"),
            ("RLOCK.MRENEW", "alice 60000"),
            ("RLOCK.MRELEASE", "alice"),
        ] {
            let line = client.error(&format!("{command} {keys} {rest}"));
            assert!(line.starts_with("CROSSSLOT "), "{command} {keys}: {line}");
        }
    }
    assert_eq!(client.int("DBSIZE"), 0);
    client.int("RLOCK.MACQUIRE 3 {x}1 x {x}2 alice 60000");
    assert_eq!(client.int("RLOCK.MRENEW 2 {x}1 {x}2 alice 60000"), 1);
    assert_eq!(client.int("RLOCK.MRELEASE 3 {x}1 x {x}2 alice"), 3);
    client.nothing_left("x");
}

both_ways!(in_a_cluster_it_waits_for_keys_of_one_slot_for_long);
/// The server looks after blocked clients in a cluster, and takes it ill when one is
/// blocked on a key that its command did not declare: within 2 s.
fn in_a_cluster_it_waits_for_keys_of_one_slot_for_long(by: Way) {
    let server = cluster();
    let mut client = server.raw();
    client.int(&format!("RLOCK.ACQUIRE {{x}}1 bob {LONG}"));
    let mut many = by.many(&server, "{x}1 {x}2 x", "m");
    let mut behind = by.many(&server, "x {x}3", "n");
    client.is_reserved("{x}2");
    eventually_within(2 * BOUND, "it has waited for long", || {
        client.info("x").oldest_wait_ms >= Some(3000)
    });
    assert_eq!(client.waiters("x"), 2);
    client.int("RLOCK.RELEASE {x}1 bob");
    many.token();
    client.int("RLOCK.MRELEASE 3 x {x}1 {x}2 m");
    behind.token();
    client.int("RLOCK.MRELEASE 2 {x}3 x n");
    client.nothing_left("x");
    server.alive();
}

#[test]
fn keys_and_owners_are_any_bytes() {
    let server = Server::start();
    let mut client = server.raw();
    let all: Vec<u8> = (0..=255).collect();
    let [key, odd, empty]: [&[u8]; 3] = [&all, b"\r\n\0", b""];
    let owners: [&[u8]; 5] = [&all, b"\0", b"1", b"BLOCK", &[0xff; 512]];
    for owner in owners {
        let take: [&[u8]; 7] = [b"RLOCK.MACQUIRE", b"3", key, odd, empty, owner, b"60000"];
        let token = client.token(&take);
        for name in [key, odd, empty] {
            let count = client.ask(&[b"HGET".as_slice(), name, owner]);
            assert_eq!(count, bulk("1"));
        }
        assert_eq!(
            client.int(&[b"RLOCK.ACQUIRE".as_slice(), odd, owner, b"1"]),
            token
        );
        let renew: [&[u8]; 6] = [b"RLOCK.MRENEW", b"2", empty, key, owner, b"60000"];
        assert_eq!(client.int(&renew), 1);
        assert_eq!(client.int(&[b"RLOCK.RELEASE".as_slice(), odd, owner]), 1);
        let release: [&[u8]; 6] = [b"RLOCK.MRELEASE", b"3", key, odd, empty, owner];
        assert_eq!(client.int(&release), 3);
        assert_eq!(client.int("DBSIZE"), 0);
    }
    let twice = client.error(&[b"RLOCK.MRELEASE".as_slice(), b"2", odd, odd, b"a"]);
    assert!(twice.starts_with("ERR "), "{twice}");
}
