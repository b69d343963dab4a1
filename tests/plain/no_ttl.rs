//! A hash without a TTL may be somebody's data: it is a lock only if rlock knows it for one
//! that somebody has PERSISTed.

use crate::support::{eventually, Ask, RawClient, Server, Waiter};

fn line(key: &str) -> String {
    format!(
        "WRONGTYPE Operation against a key holding the wrong kind of value: '{key}' has no TTL, \
         it may be somebody's data; PEXPIRE it if it is a lock, DEL it if nobody needs it, or \
         use another name"
    )
}

/// Every command that names a key.
fn requests(key: &str, owner: &str) -> Vec<String> {
    let lines = [
        "RLOCK.ACQUIRE KEY WHO 1000",
        "RLOCK.ACQUIRE KEY WHO 1000 ONCE",
        "RLOCK.ACQUIRE KEY WHO 1000 READ",
        "RLOCK.ACQUIRE KEY WHO 1000 WRITE",
        "RLOCK.ACQUIRE KEY WHO 1000 BLOCK 0",
        "RLOCK.ACQUIRE KEY WHO 1000 READ BLOCK 0 WATCHDOG",
        "RLOCK.RELEASE KEY WHO",
        "RLOCK.RELEASE KEY WHO ALL",
        "RLOCK.RELEASE KEY WHO READ",
        "RLOCK.RELEASE KEY WHO WRITE",
        "RLOCK.RELEASE KEY WHO IFHELD",
        "RLOCK.RELEASE KEY WHO IFTOKEN 7",
        "RLOCK.RENEW KEY WHO 1000",
        "RLOCK.RENEW KEY WHO 1000 READ WATCHDOG",
        "RLOCK.MACQUIRE 2 free KEY WHO 1000",
        "RLOCK.MACQUIRE 1 KEY WHO 1000 BLOCK 0",
        "RLOCK.MRELEASE 2 free KEY WHO",
        "RLOCK.MRENEW 1 KEY WHO 1000",
        "RLOCK.FORCE KEY",
        "RLOCK.FORCE KEY IFOWNER WHO",
        "RLOCK.FORCE KEY IFTOKEN 7",
        "RLOCK.INFO KEY",
        "RLOCK.WAITERS KEY",
    ];
    let named = |line: &str| line.replace("KEY", key).replace("WHO", owner);
    lines.map(named).to_vec()
}

/// Every command refuses the key and leaves it as it is.
#[track_caller]
fn is_data(client: &mut RawClient, key: &str) {
    let (before, changes) = (client.state(key.as_bytes()), client.changes());
    for owner in ["apple", "other"] {
        for request in requests(key, owner) {
            assert_eq!(client.error(&request), line(key), "{request}");
        }
    }
    assert_eq!(client.state(key.as_bytes()), before, "{key}");
    assert_eq!(client.changes(), changes, "{key}");
}

#[test]
fn an_applications_hash_is_left_alone_until_it_has_a_ttl() {
    let server = Server::start();
    let mut client = server.raw();
    for (key, fields) in [
        ("cart:2", "apple 3"),
        ("one", "apple 1"),
        ("doc", "mode read apple 1"),
        ("two", "mode read apple 1 other 2"),
        ("page", "mode write apple:write 1"),
    ] {
        client.int(&format!("HSET {key} {fields}"));
        is_data(&mut client, key);
    }
    // Whatever was looked at before: nothing of it is remembered.
    assert_eq!(client.int("PEXPIRE cart:2 60000"), 1);
    assert_eq!(client.held_by("cart:2"), "apple exclusive 3");
    assert_eq!(client.int("RLOCK.RELEASE cart:2 apple"), 2);
    assert_eq!(client.int("PEXPIRE page 60000"), 1);
    assert_eq!(client.int("RLOCK.RENEW page apple 60000 WRITE"), 1);
}

/// It has the field of a lease key beside it: still it has no TTL.
#[test]
fn a_hash_with_a_living_reader_is_data_too() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET doc mode read apple 1");
    client.ok("SET {doc}:apple:rwlock_timeout:1 doc PX 60000");
    is_data(&mut client, "doc");
    client.int("PEXPIRE doc 60000");
    assert_eq!(client.held_by("doc"), "apple read 1");
}

#[test]
fn a_lock_that_rlock_knows_stays_one_when_it_is_persisted() {
    for (mode, held) in [("", "exclusive"), ("READ", "read"), ("WRITE", "write")] {
        let server = Server::start();
        let mut client = server.raw();
        let take = format!("RLOCK.ACQUIRE job apple 60000 {mode}");
        let token = client.int(&take);
        assert_eq!(client.int("PERSIST job"), 1);
        assert_eq!(client.held_by("job"), format!("apple {held} 1"));
        assert_eq!(client.only("job").token, Some(token));
        // Nesting leaves it without a lease, and so does a release.
        assert_eq!(client.int(&take), token);
        assert_eq!(client.int(&format!("RLOCK.RELEASE job apple {mode}")), 1);
        assert_eq!(client.deadline("job"), -1);
        assert!(client.refused("RLOCK.ACQUIRE job other 1000 WRITE"));
        client.ok("DEBUG RELOAD");
        assert_eq!(client.held_by("job"), format!("apple {held} 1"));
        client.ok("SWAPDB 0 1");
        client.ok("SELECT 1");
        assert_eq!(client.held_by("job"), format!("apple {held} 1"));
        assert_eq!(
            client.int(&format!("RLOCK.RENEW job apple 60000 {mode}")),
            1
        );
        assert!(client.deadline("job") > 0);
        client.int("PERSIST job");
        assert_eq!(client.int("RLOCK.FORCE job"), 1);
        client.nothing_left("job");
        client.int(&take);
        client.int("PERSIST job");
        assert_eq!(client.int(&format!("RLOCK.RELEASE job apple {mode}")), 0);
        client.nothing_left("job");
    }
}

/// Also one that others took: a command that is refused has seen it.
#[test]
fn a_lock_that_was_found_is_known_from_then_on() {
    let server = Server::start();
    let mut client = server.raw();
    for look in [
        "RLOCK.ACQUIRE job other 1000",
        "RLOCK.RELEASE job other IFHELD",
        "RLOCK.FORCE job IFOWNER other",
        "RLOCK.MRELEASE 2 free job other",
    ] {
        for fields in ["apple 1", "mode write apple:write 1"] {
            client.int(&format!("HSET job {fields}"));
            client.int("PEXPIRE job 60000");
            client.ask(look);
            client.int("PERSIST job");
            assert!(client.held_by("job").starts_with("apple "), "{look}");
            assert_eq!(client.int("RLOCK.FORCE job"), 1, "{look}");
        }
    }
    // INFO looks and remembers nothing.
    client.int("HSET job apple 1");
    client.int("PEXPIRE job 60000");
    client.info("job");
    client.int("PERSIST job");
    is_data(&mut client, "job");
}

#[test]
fn those_who_wait_get_a_persisted_lock_when_it_is_released_or_forced() {
    let server = Server::start();
    let mut client = server.raw();
    for ends in [
        "RLOCK.RELEASE job apple",
        "RLOCK.FORCE job",
        "DEL job",
        "PEXPIRE job 20",
    ] {
        client.take("job", "apple");
        let mut waiter = Waiter::new(&server, "job", "pear");
        client.int("PERSIST job");
        waiter.still_waits();
        assert_eq!(
            client.int(ends),
            i64::from(!ends.contains("RELEASE")),
            "{ends}"
        );
        waiter.token();
        client.release("job", "pear");
    }
}

#[test]
fn a_persisted_lock_is_known_by_its_new_name() {
    let server = Server::start_observed();
    let mut client = server.raw();
    let token = client.take("job", "apple");
    client.int("PERSIST job");
    client.ok("RENAME job work");
    assert_eq!(client.only("work").token, Some(token));
    assert_eq!(client.int("MOVE work 1"), 1);
    client.ok("SELECT 1");
    assert_eq!(client.only("work").token, Some(token));
    // The field of its reader goes along, and its lease key does not.
    client.take_read("doc", "apple");
    client.int("PERSIST doc");
    client.ok("RENAME doc page");
    is_data(&mut client, "page");
    // What is renamed to the name of a lock is not that lock.
    client.int("HSET cart apple 1");
    client.ok("RENAME cart work");
    is_data(&mut client, "work");
    client.ok("SELECT 0");
    client.take("job", "apple");
    client.succeed(&["DEL job", "HSET job apple 1"]);
    is_data(&mut client, "job");
    assert_eq!(client.int("COPY job other"), 1);
    is_data(&mut client, "other");
}

#[test]
fn after_a_restart_a_persisted_lock_is_data_until_it_has_a_ttl() {
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut client = server.raw();
    for key in ["job", "work", "lives"] {
        client.take(key, "apple");
    }
    client.succeed(&["PERSIST job", "PERSIST work"]);
    client.take_write("doc", "apple");
    client.int("PERSIST doc");
    server.restart();
    let mut client = server.raw();
    for key in ["job", "work", "doc"] {
        is_data(&mut client, key);
    }
    assert_eq!(client.held_by("lives"), "apple exclusive 1");
    assert_eq!(client.int("PEXPIRE job 60000"), 1);
    assert_eq!(client.int("RLOCK.RENEW job apple 60000"), 1);
    assert_eq!(client.int("RLOCK.RELEASE job apple"), 0);
    assert_eq!(client.int("DEL work"), 1);
    client.int("RLOCK.ACQUIRE work apple 1000");
    client.int("PEXPIRE doc 60000");
    assert_eq!(client.held_by("doc"), "apple write 1");
}

#[test]
fn a_promoted_replica_knows_no_persisted_lock() {
    let master = Server::start();
    let mut client = master.raw();
    client.take("job", "apple");
    client.int("PERSIST job");
    let replica = Server::start_replica_of(&master);
    let mut copy = replica.raw();
    eventually("the replica has it", || copy.int("EXISTS job") == 1);
    assert_eq!(copy.error("RLOCK.INFO job"), line("job"));
    copy.ok("REPLICAOF NO ONE");
    is_data(&mut copy, "job");
    assert_eq!(client.held_by("job"), "apple exclusive 1");
}

#[test]
fn waiters_stay_when_their_name_becomes_data() {
    let server = Server::start();
    let mut client = server.raw();
    for ends in ["DEL job", "PEXPIRE job 30"] {
        client.take("job", "apple");
        let mut waiter = Waiter::new(&server, "job", "pear");
        client.succeed(&["MULTI", "DEL job", "HSET job apple 3", "EXEC"]);
        waiter.still_waits();
        assert_eq!(client.error("RLOCK.RELEASE job apple"), line("job"));
        assert_eq!(client.error("RLOCK.FORCE job"), line("job"));
        assert_eq!(client.hash("job"), "apple=3");
        // Who waits is shown all the same.
        assert_eq!(
            client
                .ask("RLOCK.WAITERS job")
                .into_sequence()
                .unwrap()
                .len(),
            1
        );
        assert_eq!(client.int(ends), 1);
        waiter.token();
        client.release("job", "pear");
    }
}
