//! What somebody does by hand to the keys of a read/write lock is taken as it is: a
//! reader whose lease keys are gone holds nothing, whatever is left of it.

use redis::Value;

use crate::support::{
    both_ways, each, eventually, int, lease_key, now_ms, pass, Ask, Listener, RawClient, Server,
    Way,
};

/// What takes a lease key away.
const WAYS: [&str; 7] = [
    "DEL KEY",
    "UNLINK KEY",
    "GETDEL KEY",
    "RENAME KEY elsewhere",
    "MOVE KEY 5",
    "PEXPIREAT KEY 1",
    "PEXPIRE KEY 30",
];

#[track_caller]
fn take_away(client: &mut RawClient, way: &str, key: &str) {
    client.succeed(&[way.replace("KEY", key)]);
}

both_ways!(a_reader_without_its_lease_key_is_out_and_the_writer_in);
fn a_reader_without_its_lease_key_is_out_and_the_writer_in(by: Way) {
    each(&WAYS, |way, server, client| {
        client.take_read("doc", "alice");
        let mut writer = by.write(server, "doc", "w");
        take_away(client, way, &lease_key("doc", "alice", 1));
        writer.token();
        assert_eq!(client.hash("doc"), "mode=write w:write=1", "{way}");
        let line = client.error("RLOCK.RELEASE doc alice READ");
        assert!(line.starts_with("NOTHELD "), "{line}");
    });
}

both_ways!(the_other_readers_stay_in);
fn the_other_readers_stay_in(by: Way) {
    each(&WAYS, |way, server, client| {
        client.take_read("doc", "alice");
        client.take_read("doc", "bob");
        let mut upgrade = by.write(server, "doc", "bob");
        let mut writer = by.write(server, "doc", "w");
        take_away(client, way, &lease_key("doc", "alice", 1));
        upgrade.token();
        let both = "bob:write=1 bob=1 mode=write";
        assert_eq!(client.hash("doc"), both, "{way}");
        assert_eq!(client.waiters("doc"), 1, "{way}");
        client.int("RLOCK.RELEASE doc bob WRITE");
        client.int("RLOCK.RELEASE doc bob READ");
        writer.token();
    });
}

both_ways!(a_nested_reader_is_in_while_any_of_its_lease_keys_is_there);
fn a_nested_reader_is_in_while_any_of_its_lease_keys_is_there(by: Way) {
    let server = Server::start();
    for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
        let mut client = server.raw();
        client.ok("FLUSHALL");
        for _ in 0..3 {
            client.take_read("doc", "alice");
        }
        let mut writer = by.write(&server, "doc", "w");
        for number in &order[..2] {
            client.int(&format!("DEL {}", lease_key("doc", "alice", *number)));
            assert_eq!(client.mode("doc"), "read");
            assert_eq!(client.info("doc").holders.len(), 1);
            assert!(client.refused("RLOCK.ACQUIRE doc other 1000 WRITE"));
            assert_eq!(client.waiters("doc"), 1);
        }
        client.int(&format!("DEL {}", lease_key("doc", "alice", order[2])));
        writer.token();
        assert_eq!(client.hash("doc"), "mode=write w:write=1");
    }
}

#[test]
fn without_waiters_a_reader_without_its_lease_key_is_no_reader() {
    let server = Server::start();
    let mut client = server.raw();
    let out = |client: &mut RawClient| {
        client.ok("FLUSHALL");
        client.take_read("doc", "alice");
        client.int(&format!("DEL {}", lease_key("doc", "alice", 1)));
    };
    out(&mut client);
    assert_eq!(client.mode("doc"), "free");
    assert!(client.held_by("doc").is_empty());
    for request in [
        "RLOCK.RELEASE doc alice READ",
        "RLOCK.RENEW doc alice 9 READ",
    ] {
        let line = client.error(request);
        assert!(line.starts_with("NOTHELD "), "{line}");
    }
    out(&mut client);
    client.take_write("doc", "w");
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    out(&mut client);
    client.int("RLOCK.ACQUIRE doc p 1000");
    assert_eq!(client.hash("doc"), "p=1");
    out(&mut client);
    client.take_read("doc", "bob");
    assert_eq!(client.hash("doc"), "bob=1 mode=read");
    out(&mut client);
    // A hold that is gone does not nest.
    client.int("RLOCK.ACQUIRE doc alice 1000 READ ONCE");
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
    assert_eq!(client.leases("doc", "alice").len(), 1);
}

both_ways!(an_evicted_lease_key_is_announced_under_the_locks_name);
/// Only what has a TTL is evicted, so the hash is given none.
fn an_evicted_lease_key_is_announced_under_the_locks_name(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("CONFIG SET maxmemory-policy volatile-ttl");
    client.take_read("doc", "alice");
    client.int("PERSIST doc");
    let mut writer = by.write(&server, "doc", "w");
    let mut events = Listener::keyspace(&server, 0);
    // The least there is: the next command has to make room.
    client.ok("CONFIG SET maxmemory 1");
    client.ask("PING");
    writer.token();
    client.ok("CONFIG SET maxmemory 0");
    let told: Vec<_> = events
        .events()
        .into_iter()
        .filter(|(event, _)| event.starts_with("rlock."))
        .collect();
    let event = |name: &str| (name.to_owned(), "doc".to_owned());
    let expected = [event("rlock.evicted"), event("rlock.acquired")];
    assert_eq!(told[..2], expected);
    let line = client.error("RLOCK.RELEASE doc alice READ");
    assert!(line.starts_with("NOTHELD "), "{line}");
    server.alive();
}

both_ways!(a_readers_lease_that_was_changed_by_hand_is_taken_as_it_is);
fn a_readers_lease_that_was_changed_by_hand_is_taken_as_it_is(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let key = lease_key("doc", "alice", 1);
    let set = |client: &mut RawClient, lines: &[&str]| {
        client.ok("FLUSHALL");
        client.take_read("doc", "alice");
        let writer = by.write(&server, "doc", "w");
        let replies = client.succeed(lines);
        (writer, int(replies[1].clone()))
    };
    let when = format!("PEXPIRETIME {key}");
    // Shorter.
    let shorter = format!("PEXPIRE {key} 300");
    let (mut writer, ends) = set(&mut client, &[&shorter, &when]);
    writer.token();
    assert!(now_ms() >= ends);
    // Longer, after that.
    let longer = format!("PEXPIRE {key} 90000");
    let (mut writer, ends) = set(&mut client, &[&shorter, &when, &longer]);
    pass(ends + 200);
    assert_eq!(client.held_by("doc"), "alice read 1");
    assert_eq!(client.waiters("doc"), 1);
    client.int("RLOCK.RELEASE doc alice READ");
    writer.token();
    // A hash that ends ends all, whatever the leases are.
    let (mut writer, ends) = set(&mut client, &["PEXPIRE doc 300", "PEXPIRETIME doc"]);
    writer.token();
    assert!(now_ms() >= ends);
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    // A hash that does not end ends none of them later.
    let (mut writer, ends) = set(&mut client, &[&shorter, &when, "PERSIST doc"]);
    writer.token();
    assert!(now_ms() >= ends);
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    assert!(client.deadline("doc") > 0);
}

both_ways!(a_persisted_reader_has_no_lease_until_it_is_renewed);
fn a_persisted_reader_has_no_lease_until_it_is_renewed(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let key = lease_key("doc", "alice", 1);
    let replies = client.succeed(&[
        "RLOCK.ACQUIRE doc alice 200 READ",
        "PEXPIRETIME doc",
        "PERSIST doc",
        &format!("PERSIST {key}"),
    ]);
    assert_eq!(replies[2..], [Value::Int(1), Value::Int(1)]);
    let mut writer = by.write(&server, "doc", "w");
    pass(int(replies[1].clone()) + 100);
    assert_eq!(client.held_by("doc"), "alice read 1");
    // Nesting leaves it without.
    client.int("RLOCK.ACQUIRE doc alice 100 READ");
    assert_eq!(client.leases("doc", "alice"), [-1, -1]);
    assert_eq!(client.deadline("doc"), -1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 1);
    assert_eq!(client.waiters("doc"), 1);
    let replies = client.succeed(&[
        "RLOCK.RENEW doc alice 300 READ",
        &format!("PEXPIRETIME {key}"),
    ]);
    let ends = int(replies[1].clone());
    assert!(ends > 0);
    writer.token();
    assert!(now_ms() >= ends);
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
}

both_ways!(a_writers_lease_that_was_changed_by_hand_is_taken_as_it_is);
fn a_writers_lease_that_was_changed_by_hand_is_taken_as_it_is(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let replies = client.succeed(&["PEXPIRE doc 200", "PEXPIRETIME doc", "PERSIST doc"]);
    pass(int(replies[1].clone()) + 100);
    assert_eq!(client.waiters("doc"), 2);
    client.int("RLOCK.ACQUIRE doc alice 100 WRITE");
    assert_eq!(client.deadline("doc"), -1);
    let replies = client.succeed(&["PEXPIRE doc 300", "PEXPIRETIME doc"]);
    for reader in &mut readers {
        reader.token();
    }
    assert!(now_ms() >= int(replies[1].clone()));
    client.goes_to("doc", "a read 1, b read 1");
}

both_ways!(fields_that_were_changed_by_hand_are_taken_as_they_are);
fn fields_that_were_changed_by_hand_are_taken_as_they_are(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    // A writer's field goes, and the rest says that it reads.
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    let mut reader = by.read(&server, "doc", "a");
    client.succeed(&[
        "MULTI",
        "HDEL doc alice:write",
        "HSET doc mode read",
        "EXEC",
    ]);
    reader.token();
    assert_eq!(client.hash("doc"), "a=1 alice=1 mode=read");
    // A reader's field goes.
    let mut upgrade = by.write(&server, "doc", "alice");
    client.int("HDEL doc a");
    upgrade.token();
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
    // All of it goes.
    let mut writer = by.write(&server, "doc", "w");
    client.int("HDEL doc alice alice:write mode");
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    assert_eq!(client.int("EXISTS doc"), 0);
    assert_eq!(client.mode("doc"), "free");
    client.ok("FLUSHALL");
    client.nothing_left("doc");
}

/// Newer servers can end a field by itself.
#[test]
fn readers_whose_fields_the_server_ends_leave_the_lock_free() {
    let server = Server::start();
    if !server.version().ends_fields() {
        return;
    }
    let mut client = server.raw();
    for round in ["nobody waits", "somebody waits"] {
        client.take_read("doc", "a");
        client.take_read("doc", "b");
        let mut writer = (round == "somebody waits").then(|| Way::Block.write(&server, "doc", "w"));
        client.list("HPEXPIRE doc 100 FIELDS 2 a b");
        match &mut writer {
            Some(writer) => {
                writer.token();
                client.int("RLOCK.RELEASE doc w WRITE");
            }
            None => eventually("the server ends them", || client.int("HLEN doc") <= 1),
        }
        client.take_write("doc", "x");
        client.int("RLOCK.FORCE doc");
    }
}
