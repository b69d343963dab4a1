//! Read/write locks whose key goes: by FORCE, by hand, with the whole database, or
//! under another name. Who waits is next at once.

use redis::Value;

use crate::support::{both_ways, bulk, each, lease_key, token, Ask, Server, Way};

#[test]
fn force_frees_all_readers_and_their_leases() {
    let server = Server::start();
    let mut client = server.raw();
    let first = client.take_read("doc", "alice");
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    assert_eq!(client.int("RLOCK.FORCE doc"), 1);
    client.nothing_left("doc");
    assert_eq!(client.int("RLOCK.FORCE doc"), 0);
    for owner in ["alice", "bob"] {
        let line = client.error(&format!("RLOCK.RELEASE doc {owner} READ"));
        assert!(line.starts_with("NOTHELD "), "{line}");
    }
    assert!(client.take_read("doc", "alice") > first);
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
    client.ok("FLUSHALL");

    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    assert_eq!(client.int("RLOCK.FORCE doc"), 1);
    client.nothing_left("doc");
}

both_ways!(force_lets_the_next_in_within_the_same_step);
fn force_lets_the_next_in_within_the_same_step(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut writer = by.write(&server, "doc", "w");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let replies = client.succeed(&["RLOCK.FORCE doc", "HGET doc w:write", "HLEN doc"]);
    assert_eq!(replies[0], Value::Int(1));
    assert_eq!(replies[1..], [bulk("1"), Value::Int(2)]);
    writer.token();
    assert_eq!(client.int("DBSIZE"), 1);
    assert_eq!(client.int("RLOCK.FORCE doc"), 1);
    assert_eq!(client.hash("doc"), "a=1 b=1 mode=read");
    for reader in &mut readers {
        reader.token();
    }
}

#[test]
fn force_frees_a_lock_without_a_ttl() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.int("PERSIST doc");
    assert_eq!(client.int("RLOCK.FORCE doc"), 1);
    client.nothing_left("doc");
}

/// What makes the hash go; the lease keys of the readers may stay behind.
const WAYS: [&str; 10] = [
    "RLOCK.FORCE doc",
    "DEL doc",
    "UNLINK doc",
    "PEXPIREAT doc 1",
    "PEXPIRE doc 30",
    "RENAME doc elsewhere",
    "MOVE doc 5",
    "FLUSHDB",
    "FLUSHALL",
    "SWAPDB 0 6",
];

both_ways!(a_lock_that_goes_lets_the_queue_in_from_its_head);
fn a_lock_that_goes_lets_the_queue_in_from_its_head(by: Way) {
    each(&WAYS, |way, server, client| {
        client.take_read("doc", "alice");
        client.take_read("doc", "bob");
        let mut writer = by.write(server, "doc", "w");
        let mut readers = ["a", "b"].map(|owner| by.read(server, "doc", owner));
        let mut last = by.write(server, "doc", "w2");
        client.succeed(&[way]);
        writer.token();
        assert_eq!(client.hash("doc"), "mode=write w:write=1", "{way}");
        assert_eq!(client.waiters("doc"), 3, "{way}");

        // Another database than before, where there is one in it.
        client.ask(&way.replace('5', "7").replace('6', "8"));
        for reader in &mut readers {
            reader.token();
        }
        assert_eq!(client.hash("doc"), "a=1 b=1 mode=read", "{way}");
        client.int("RLOCK.RELEASE doc a READ");
        client.int("RLOCK.RELEASE doc b READ");
        last.token();
        client.int("RLOCK.RELEASE doc w2 WRITE");
        assert_eq!(client.mode("doc"), "free", "{way}");
    });
}

both_ways!(a_transaction_that_takes_a_lock_over_leaves_no_other_holder);
fn a_transaction_that_takes_a_lock_over_leaves_no_other_holder(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "w");
    client.send_all(&[
        "MULTI",
        "DEL doc",
        "RLOCK.ACQUIRE doc x 100000 READ",
        "EXEC",
    ]);
    let replies = client.read_many(4);
    let Value::Array(within) = &replies[3] else {
        panic!("{replies:?}");
    };
    // The next command gives the lock to who waited, or this one was first.
    match &within[1] {
        Value::Nil => client.goes_to("doc", "w write 1"),
        taken => {
            token(taken.clone());
            client.goes_to("doc", "x read 1");
            client.int("RLOCK.RELEASE doc x READ");
        }
    }
    writer.token();
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
}

#[test]
fn leftover_lease_keys_hold_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    for _ in 0..3 {
        client.take_read("doc", "alice");
    }
    client.int("DEL doc");
    assert_eq!(client.mode("doc"), "free");
    client.take_write("doc", "w");
    assert_eq!(client.int("RLOCK.RELEASE doc w WRITE"), 0);
    // The owner's own leftovers are in nobody's way.
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    assert_eq!(client.mode("doc"), "free");
    client.take_write("doc", "w");
}

both_ways!(a_read_lock_under_another_name_has_no_readers);
fn a_read_lock_under_another_name_has_no_readers(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut writer = by.write(&server, "doc", "w");
    let deadline = client.deadline("doc");
    let lease = lease_key("doc", "alice", 1);
    let lease_ends = client.deadline(&lease);
    client.ok("RENAME doc page");
    writer.token();
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    // The leases did not move, so what is there is no hold.
    assert_eq!(client.mode("page"), "free");
    assert!(client.held_by("page").is_empty());
    let line = client.error("RLOCK.RELEASE page alice READ");
    assert!(line.starts_with("NOTHELD "), "{line}");
    if client.int("EXISTS page") == 1 {
        assert_eq!(client.deadline("page"), deadline, "it ends with its TTL");
    }
    let leftover = client.deadline(&lease);
    assert!([-2, lease_ends].contains(&leftover), "{leftover}");
    client.take_write("page", "x");
    assert_eq!(client.hash("page"), "mode=write x:write=1");
}

both_ways!(a_write_lock_goes_with_its_name);
fn a_write_lock_goes_with_its_name(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let held = client.take_write("doc", "alice");
    let deadline = client.deadline("doc");
    let mut reader = by.read(&server, "doc", "a");
    let mut there = by.read(&server, "page", "b");
    there.token();
    client.int("RLOCK.RELEASE page b READ");
    client.ok("RENAME doc page");
    reader.token();
    assert_eq!(client.hash("doc"), "a=1 mode=read");
    assert_eq!(client.hash("page"), "alice:write=1 mode=write");
    assert_eq!(client.deadline("page"), deadline);
    assert!(client.refused("RLOCK.ACQUIRE page b 1000 READ"));
    assert_eq!(client.take_write("page", "alice"), held);
    let mut waits = by.read(&server, "page", "b");
    assert_eq!(client.int("RLOCK.RELEASE page alice WRITE ALL"), 0);
    waits.token();
}

both_ways!(a_key_that_is_no_lock_keeps_its_waiters);
fn a_key_that_is_no_lock_keeps_its_waiters(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for (overwrite, free) in [("SET doc v", "DEL doc"), ("SET doc v", "FLUSHALL")] {
        client.ok("FLUSHALL");
        client.take_write("doc", "alice");
        let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
        let mut writer = by.write(&server, "doc", "w");
        client.ask(overwrite);
        for request in [
            "RLOCK.ACQUIRE doc x 1000 READ",
            "RLOCK.ACQUIRE doc x 1000 WRITE BLOCK 0",
            "RLOCK.RELEASE doc alice WRITE",
        ] {
            let line = client.error(request);
            assert!(line.starts_with("WRONGTYPE "), "{request}: {line}");
        }
        client.ask(free);
        for reader in &mut readers {
            reader.token();
        }
        assert_eq!(client.hash("doc"), "a=1 b=1 mode=read");
        client.int("RLOCK.RELEASE doc a READ");
        client.int("RLOCK.RELEASE doc b READ");
        writer.token();
        for waiter in readers.iter_mut().chain([&mut writer]) {
            waiter.client.in_step();
        }
    }
}

both_ways!(a_reload_keeps_readers_writers_and_queues);
fn a_reload_keeps_readers_writers_and_queues(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let alice = client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "r");
    client.ok("DEBUG RELOAD");
    assert_eq!(client.held_by("doc"), "alice read 1, bob read 1");
    assert_eq!(client.waiters("doc"), 2);
    assert!(client.refused("RLOCK.ACQUIRE doc x 1000 READ"));
    assert_eq!(client.take_read("doc", "alice"), alice);
    client.int("RLOCK.RELEASE doc alice READ ALL");
    client.int("RLOCK.RELEASE doc bob READ");
    writer.token();
    client.ok("DEBUG RELOAD");
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();
    client.int("RLOCK.RELEASE doc r READ");
    client.nothing_left("doc");
}
