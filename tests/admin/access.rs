//! Who may use the commands, and when the server lets them: ACL, memory, roles.

use crate::support::{eventually, longest, now_ms, user, Ask, Server, Waiter};

const KEYED: [&str; 5] = [
    "RLOCK.ACQUIRE KEY alice 60000",
    "RLOCK.RENEW KEY alice 60000",
    "RLOCK.INFO KEY",
    "RLOCK.RELEASE KEY alice",
    "RLOCK.FORCE KEY",
];

#[test]
fn a_user_reaches_only_the_keys_of_its_patterns() {
    let server = Server::start();
    let mut admin = server.raw();
    admin.int("RLOCK.ACQUIRE b alice 60000");
    let before = admin.state(b"b");
    let mut worker = user(&server, "+@all ~a*");
    for request in KEYED {
        assert!(worker.denied(&request.replace("KEY", "b")), "{request}");
        let allowed = request.replace("KEY", "a:1");
        assert!(!worker.denied(&allowed), "{request}");
    }
    assert!(!worker.denied("RLOCK.OWNER"));
    assert_eq!(admin.state(b"b"), before);
    // Scripts do not get around it.
    let script = "return redis.call('RLOCK.RELEASE', 'b', 'alice')";
    let line = worker.error(&["EVAL", script, "0"]);
    assert!(line.contains("access"), "{line}");
    assert_eq!(admin.state(b"b"), before);
}

#[test]
fn a_user_reaches_only_the_commands_it_was_given() {
    let server = Server::start();
    let mut worker = user(&server, "~* -@all +rlock.acquire +rlock.release");
    worker.int("RLOCK.ACQUIRE job alice 60000");
    for request in [
        "RLOCK.RENEW job alice 60000",
        "RLOCK.FORCE job",
        "RLOCK.INFO job",
    ] {
        assert!(worker.denied(request), "{request}");
    }
    assert!(worker.denied("RLOCK.OWNER"));
    assert_eq!(worker.int("RLOCK.RELEASE job alice"), 0);
}

#[test]
fn categories_cover_the_commands_where_modules_can_have_them() {
    let server = Server::start();
    let mut writer = user(&server, "~* -@all +@write");
    if !server.version().at_least(7, 2) {
        // Redis 7.0 puts the commands of modules in no category.
        assert!(writer.denied("RLOCK.ACQUIRE job alice 60000"));
        return;
    }
    writer.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(writer.int("RLOCK.RENEW job alice 60000"), 1);
    assert!(!writer.denied("RLOCK.HEARTBEAT 30000"));
    assert!(writer.denied("RLOCK.INFO job"));
    assert!(writer.denied("RLOCK.OWNER"));
    assert_eq!(writer.int("RLOCK.RELEASE job alice"), 0);

    let mut reader = user(&server, "~* -@all +@read");
    assert!(!reader.denied("RLOCK.INFO job"));
    assert!(reader.denied("RLOCK.ACQUIRE job alice 60000"));

    let mut careful = user(&server, "~* +@all -@dangerous");
    careful.int("RLOCK.ACQUIRE job alice 60000");
    assert!(careful.denied("RLOCK.FORCE job"));
    assert!(!careful.denied("RLOCK.OWNER"));
    assert_eq!(careful.int("RLOCK.RELEASE job alice"), 0);

    let mut patient = user(&server, "~* +@all -@blocking");
    assert!(patient.denied("RLOCK.ACQUIRE job alice 60000"));
}

#[test]
fn when_memory_is_full_locks_can_be_kept_and_freed_but_not_taken() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.ACQUIRE other alice 60000");
    client.int("RLOCK.ACQUIRE pool alice 60000 LIMIT 2");
    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    client.ok("CONFIG SET maxmemory 1");
    for request in [
        "RLOCK.ACQUIRE free alice 60000",
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.ACQUIRE job carol 60000 BLOCK 0",
    ] {
        let line = client.error(request);
        assert!(line.starts_with("OOM "), "{request}: {line}");
    }
    assert_eq!(client.texts("HGETALL job"), ["alice", "2"]);
    assert_eq!(client.int("RLOCK.LIMIT pool 1"), 2);
    assert_eq!(client.int("RLOCK.RENEW job alice 90000"), 1);
    assert!(client.int("PTTL job") > 60_000);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    // Those who wait already are granted all the same.
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    waiter.token();
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);
    assert_eq!(client.int("RLOCK.FORCE other"), 1);
    client.ok("CONFIG SET maxmemory 0");
    client.int("RLOCK.ACQUIRE free alice 60000");
}

#[test]
fn a_replica_shows_locks_and_changes_none() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.raw().int("RLOCK.ACQUIRE job alice 60000");
    let mut client = replica.raw();
    eventually("the lock is there", || client.int("EXISTS job") == 1);
    let before = client.state(b"job");
    for request in [
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.ACQUIRE free alice 60000 BLOCK 0",
        "RLOCK.RELEASE job alice",
        "RLOCK.RENEW job alice 60000",
        "RLOCK.FORCE job",
    ] {
        let line = client.error(request);
        assert!(line.starts_with("READONLY "), "{request}: {line}");
    }
    assert_eq!(client.mode("job"), "exclusive");
    let held = client.only("job");
    assert_eq!((held.owner.as_str(), held.holds), ("alice", 1));
    let remaining = held.remaining_ms.expect("a lease");
    assert!((1..=longest(60_000)).contains(&remaining), "{remaining}");
    assert_eq!(held.token, None);
    assert_eq!(client.mode("free"), "free");
    assert!(client.text("RLOCK.OWNER").contains(':'));
    assert_eq!(client.state(b"job"), before);
}

#[test]
fn a_replica_shows_a_lock_whose_lease_is_over_as_free() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut client = replica.raw();
    let mut holder = master.raw();
    holder.int("RLOCK.ACQUIRE job alice 60000");
    eventually("the lock is there", || client.int("EXISTS job") == 1);
    holder.int("RLOCK.RENEW job alice 1000");
    let deadline = holder.deadline("job");
    eventually("its lease is there", || client.deadline("job") == deadline);
    // A master that says nothing: the replica keeps the key, and it is over.
    master.pause_process();
    eventually("the lease is over", || now_ms() > deadline + 1);
    assert_eq!(client.int("DBSIZE"), 1);
    assert_eq!(client.mode("job"), "free");
    assert_eq!(client.int("DBSIZE"), 1);
    master.resume_process();
}

#[test]
fn the_server_knows_which_argument_is_a_key() {
    let server = Server::start();
    let mut client = server.raw();
    for request in KEYED {
        let request = request.replace("KEY", "job");
        let keys = client.texts(&format!("COMMAND GETKEYS {request}"));
        assert_eq!(keys, ["job"], "{request}");
    }
    let line = client.error("COMMAND GETKEYS RLOCK.OWNER nothing");
    assert!(line.contains("no key arguments"), "{line}");
}
