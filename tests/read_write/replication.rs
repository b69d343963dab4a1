//! What replicas and the AOF get of read/write locks: plain commands with absolute
//! times, so that every copy is the same to the millisecond.

use redis::Value;

use crate::support::{
    aof, both_ways, eventually, lease_key, now_ms, same_on_both, text, Ask, RawClient, Server,
    Waiter, Way, AOF,
};

#[test]
fn a_replica_has_the_same_keys_to_the_millisecond() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut here, mut there) = (master.raw(), replica.raw());
    for request in [
        "RLOCK.ACQUIRE doc alice 10000 READ",
        "RLOCK.ACQUIRE doc alice 1000 READ",
        "RLOCK.ACQUIRE doc bob 60000 READ",
        "RLOCK.ACQUIRE doc alice 90000 READ",
        "RLOCK.RENEW doc alice 30000 READ",
        "RLOCK.RENEW doc bob 200000 READ",
        "RLOCK.RELEASE doc alice READ",
        "RLOCK.RELEASE doc bob READ",
        "RLOCK.ACQUIRE doc alice 50000 WRITE",
        "RLOCK.ACQUIRE doc alice 70000 WRITE",
        "RLOCK.RENEW doc alice 20000 WRITE",
        "RLOCK.RELEASE doc alice READ ALL",
        "RLOCK.ACQUIRE doc alice 40000 READ",
        "RLOCK.RELEASE doc alice WRITE ALL",
        "RLOCK.ACQUIRE doc carol 9007199254740991 READ",
        "RLOCK.FORCE doc",
        "RLOCK.ACQUIRE doc alice 10000 WRITE",
        "RLOCK.RELEASE doc alice WRITE",
    ] {
        here.int(request);
        same_on_both(&mut here, &mut there, request);
    }
    here.nothing_left("doc");
    assert_eq!(there.int("DBSIZE"), 0);
}

both_ways!(a_replica_has_what_waiters_were_granted);
fn a_replica_has_what_waiters_were_granted(by: Way) {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut here, mut there) = (master.raw(), replica.raw());
    here.take_write("doc", "alice");
    here.take_read("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&master, "doc", owner));
    let mut writer = by.write(&master, "doc", "w");
    let mut last = by.read(&master, "doc", "r");
    here.int("RLOCK.RELEASE doc alice WRITE");
    for reader in &mut readers {
        reader.token();
    }
    same_on_both(&mut here, &mut there, "a downgrade");
    here.int("RLOCK.RELEASE doc a READ");
    here.int("RLOCK.RENEW doc alice 50 READ");
    here.int("RLOCK.RENEW doc b 90 READ");
    writer.token();
    same_on_both(&mut here, &mut there, "leases that ended");
    assert_eq!(there.hash("doc"), "mode=write w:write=1");
    here.int("DEL doc");
    last.token();
    same_on_both(&mut here, &mut there, "a key that went");
    assert_eq!(there.hash("doc"), "mode=read r=1");
    let mut upgrade = by.write(&master, "doc", "r");
    upgrade.token();
    same_on_both(&mut here, &mut there, "an upgrade");
}

#[test]
fn a_reader_that_ended_alone_is_gone_on_the_replica_too() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut here, mut there) = (master.raw(), replica.raw());
    here.take_read("doc", "bob");
    here.int("RLOCK.ACQUIRE doc alice 60 READ");
    let key = lease_key("doc", "alice", 1);
    eventually("its lease is over", || {
        here.int(&format!("EXISTS {key}")) == 0
    });
    here.take_read("doc", "bob");
    assert_eq!(here.hash("doc"), "bob=2 mode=read");
    same_on_both(&mut here, &mut there, "an end");
    assert_eq!(there.held_by("doc"), "bob read 2");
}

both_ways!(a_replica_that_becomes_the_master_has_the_same_readers);
fn a_replica_that_becomes_the_master_has_the_same_readers(by: Way) {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut here, mut there) = (master.raw(), replica.raw());
    here.take_read("doc", "alice");
    here.take_read("doc", "alice");
    here.take_read("doc", "bob");
    here.take_write("page", "alice");
    same_on_both(&mut here, &mut there, "all");
    there.ok("REPLICAOF NO ONE");
    let mut writer = by.write(&replica, "doc", "w");
    assert_eq!(there.held_by("doc"), "alice read 2, bob read 1");
    assert!(there.refused("RLOCK.ACQUIRE page r 1000 READ"));
    assert_eq!(there.int("RLOCK.RELEASE doc alice READ"), 1);
    assert_eq!(there.int("RLOCK.RELEASE doc bob READ"), 0);
    assert_eq!(there.waiters("doc"), 1);
    there.int("RLOCK.RENEW doc alice 200 READ");
    writer.token();
    assert_eq!(there.int("RLOCK.RELEASE page alice WRITE"), 0);
}

#[test]
fn a_replica_shows_a_reader_whose_lease_is_over_as_gone() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut here, mut there) = (master.raw(), replica.raw());
    here.take_read("doc", "bob");
    here.take_read("doc", "alice");
    here.int("RLOCK.RENEW doc alice 1500 READ");
    let ends = here.lease("doc", "alice");
    same_on_both(&mut here, &mut there, "the lease");
    // A master that says nothing: the replica keeps the keys, and one is over.
    master.pause_process();
    eventually("the lease is over", || now_ms() > ends + 1);
    assert_eq!(there.held_by("doc"), "bob read 1");
    assert_eq!(there.hash("doc"), "alice=1 bob=1 mode=read");
    let line = there.error("RLOCK.ACQUIRE doc carol 1000 READ");
    assert!(line.starts_with("READONLY "), "{line}");
    master.resume_process();
}

/// The commands of a crowd of changes, as anybody may see them.
const CHANGES: [&str; 14] = [
    "RLOCK.ACQUIRE doc alice 60000 READ",
    "RLOCK.ACQUIRE doc bob 60000 READ",
    "RLOCK.ACQUIRE doc alice 90000 READ",
    "RLOCK.ACQUIRE doc w 1000 WRITE",
    "RLOCK.RENEW doc alice 30000 READ",
    "RLOCK.RELEASE doc alice READ",
    "RLOCK.RELEASE doc bob READ",
    "RLOCK.ACQUIRE doc alice 60000 WRITE",
    "RLOCK.RENEW doc alice 60000 WRITE",
    "RLOCK.RELEASE doc alice WRITE",
    "RLOCK.RELEASE doc alice READ",
    "RLOCK.ACQUIRE doc alice 60000 WRITE",
    "RLOCK.ACQUIRE doc alice 60000 READ",
    "RLOCK.FORCE doc",
];

/// Plain data, and no time that counts from whenever it is read.
#[track_caller]
fn is_plain(words: &[String]) {
    let name = words[0].to_uppercase();
    let plain = [
        "HSET",
        "HDEL",
        "SET",
        "PEXPIREAT",
        "DEL",
        "UNLINK",
        "PUBLISH",
        "PERSIST",
    ];
    assert!(plain.contains(&name.as_str()), "{words:?}");
    let relative = |word: &String| ["PX", "EX"].contains(&word.to_uppercase().as_str());
    assert!(!words.iter().any(relative), "{words:?}");
}

#[test]
fn a_replica_without_the_module_understands_all_of_it() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let (mut here, mut there) = (master.raw(), replica.raw());
    there.ok("MODULE UNLOAD rlock");
    let mut monitor = replica.raw();
    monitor.ok("MONITOR");
    for request in CHANGES {
        here.ask(request);
    }
    here.take_read("doc", "bob");
    here.take_read("doc", "bob");
    here.ok("SET end 1");
    loop {
        let line = text(monitor.read());
        let words: Vec<String> = line
            .split('"')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        let name = words[0].to_uppercase();
        if words[..2.min(words.len())] == ["SET", "end"] {
            break;
        }
        if !["SELECT", "PING", "REPLCONF", "INFO", "MULTI", "EXEC"].contains(&name.as_str()) {
            is_plain(&words);
        }
    }
    same_on_both(&mut here, &mut there, "all");
    assert_eq!(there.hash("doc"), "bob=2 mode=read");
}

/// The commands in the AOF, but for MULTI and EXEC, and whether they stand between
/// these.
#[track_caller]
fn commands(server: &Server) -> Vec<(bool, Vec<String>)> {
    let mut commands = Vec::new();
    let mut in_multi = false;
    for words in aof(server) {
        match words[0].to_uppercase().as_str() {
            "MULTI" => in_multi = true,
            "EXEC" => in_multi = false,
            _ => commands.push((in_multi, words)),
        }
    }
    commands
}

both_ways!(the_aof_holds_plain_commands_each_decision_as_one);
fn the_aof_holds_plain_commands_each_decision_as_one(by: Way) {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    let mut seen = 0;
    for request in CHANGES {
        let reply = client.ask(request);
        let all = commands(&server);
        let new = &all[seen..];
        match reply {
            Value::Nil => assert!(new.is_empty(), "{request}: {new:?}"),
            _ => assert!(!new.is_empty(), "{request}"),
        }
        for (in_multi, words) in new {
            is_plain(words);
            // A cut in between would leave half a lock.
            assert!(*in_multi || new.len() == 1, "{request}: {new:?}");
        }
        seen = all.len();
    }

    // A grant of several, together with what caused it.
    client.take_write("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let seen = commands(&server).len();
    client.int("RLOCK.RELEASE doc alice WRITE");
    for reader in &mut readers {
        reader.token();
    }
    let all = commands(&server);
    assert!(all[seen..].iter().all(|(in_multi, _)| *in_multi), "{all:?}");
}

/// Puts locks of several kinds.
fn put_locks(client: &mut RawClient) {
    for request in [
        "RLOCK.ACQUIRE doc alice 3600000 READ",
        "RLOCK.ACQUIRE doc alice 7200000 READ",
        "RLOCK.ACQUIRE doc bob 3600000 READ",
        "RLOCK.ACQUIRE doc gone 3600000 READ",
        "RLOCK.RELEASE doc gone READ",
        "RLOCK.RENEW doc bob 1800000 READ",
        "RLOCK.ACQUIRE page alice 3600000 READ",
        "RLOCK.ACQUIRE page alice 3600000 WRITE",
        "RLOCK.ACQUIRE down alice 3600000 WRITE",
        "RLOCK.ACQUIRE down alice 3600000 READ",
        "RLOCK.RELEASE down alice WRITE",
        "RLOCK.ACQUIRE free alice 3600000 READ",
        "RLOCK.RELEASE free alice READ",
        // One that was handed over when its lease ended.
        "RLOCK.ACQUIRE over alice 40 READ",
        "RLOCK.ACQUIRE over bob 3600000 WRITE BLOCK 0",
    ] {
        client.int(request);
    }
}

#[track_caller]
fn assert_locks_work(server: &Server) {
    let mut client = server.raw();
    assert_eq!(client.hash("doc"), "alice=2 bob=1 mode=read");
    assert_eq!(client.held_by("doc"), "alice read 2, bob read 1");
    assert_eq!(client.held_by("page"), "alice write 1, alice read 1");
    assert_eq!(client.held_by("down"), "alice read 1");
    assert_eq!(client.held_by("over"), "bob write 1");
    assert!(client.refused("RLOCK.ACQUIRE doc w 1000 WRITE"));
    assert!(client.refused("RLOCK.ACQUIRE page r 1000 READ"));
    client.int("RLOCK.ACQUIRE down r 1000 READ");
    // Each lease still ends by itself, now that the lock was touched.
    let mut writer = Waiter::with(server, "doc w 100000 WRITE BLOCK 0");
    client.int("RLOCK.RENEW doc alice 100 READ");
    client.int("RLOCK.RENEW doc bob 200 READ");
    writer.token();
    assert_eq!(client.int("RLOCK.RELEASE page alice WRITE"), 0);
    client.int("RLOCK.ACQUIRE page r 1000 READ");
}

#[test]
fn after_a_crash_the_aof_gives_the_same_locks() {
    let mut server = Server::start_with(&AOF);
    put_locks(&mut server.raw());
    let before = server.raw().everything();
    server.kill();
    server.start_again();
    assert_eq!(server.raw().everything(), before);
    assert_locks_work(&server);
}

#[test]
fn after_a_restart_an_rdb_file_gives_the_same_locks() {
    let mut server = Server::start();
    put_locks(&mut server.raw());
    let before = server.raw().everything();
    server.raw().ok("SAVE");
    server.kill();
    server.start_again();
    assert_eq!(server.raw().everything(), before);
    assert_locks_work(&server);
}
