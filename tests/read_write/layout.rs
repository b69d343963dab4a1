//! How a read/write lock lies in the keyspace: the hash, the lease keys, and when
//! each of them ends. Redisson reads and writes the same.

use crate::support::{lease_from, lease_key, Ask, Server};

#[test]
fn a_reader_has_a_field_and_a_lease_key_that_end_together() {
    let server = Server::start();
    let mut client = server.raw();
    let (_, ends) = lease_from(60_000, || client.int("RLOCK.ACQUIRE doc alice 60000 READ"));
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
    let deadline = client.deadline("doc");
    assert!(ends.contains(&deadline), "{deadline} in {ends:?}");
    assert_eq!(client.leases("doc", "alice"), [deadline]);
    assert_eq!(client.text("GET {doc}:alice:rwlock_timeout:1"), "doc");
    assert_eq!(client.int("DBSIZE"), 2);

    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    client.nothing_left("doc");
}

#[test]
fn each_read_hold_has_a_lease_key_of_its_own() {
    let server = Server::start();
    let mut client = server.raw();
    for count in 1..=4 {
        client.take_read("doc", "alice");
        let expected = format!("alice={count} mode=read");
        assert_eq!(client.hash("doc"), expected);
        assert_eq!(client.leases("doc", "alice").len(), count);
        assert_eq!(client.int("DBSIZE"), 1 + count as i64);
        let lease = client.lease("doc", "alice");
        assert_eq!(client.deadline("doc"), lease);
        let value = client.text(&format!("GET {}", lease_key("doc", "alice", count)));
        assert_eq!(value, "doc");
    }
    for left in (1..4).rev() {
        let released = client.int("RLOCK.RELEASE doc alice READ");
        assert_eq!(released, left);
        let expected = format!("alice={left} mode=read");
        assert_eq!(client.hash("doc"), expected);
        assert_eq!(client.leases("doc", "alice").len() as i64, left);
        assert_eq!(client.int("DBSIZE"), 1 + left);
    }
    client.take_read("doc", "alice");
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ ALL"), 0);
    client.nothing_left("doc");
}

#[test]
fn an_owner_has_one_lease_for_all_its_read_holds() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    let first = client.lease("doc", "alice");
    client.int("RLOCK.ACQUIRE doc alice 1000 READ");
    assert_eq!(client.leases("doc", "alice"), [first, first]);
    assert_eq!(client.deadline("doc"), first);

    let (_, ends) = lease_from(90_000, || client.int("RLOCK.ACQUIRE doc alice 90000 READ"));
    let longer = client.lease("doc", "alice");
    assert!(ends.contains(&longer), "{longer} in {ends:?}");
    assert_eq!(client.leases("doc", "alice").len(), 3);
    assert_eq!(client.deadline("doc"), longer);

    for ms in [30_000, 120_000] {
        let renew = format!("RLOCK.RENEW doc alice {ms} READ");
        let (_, ends) = lease_from(ms, || client.int(&renew));
        let renewed = client.lease("doc", "alice");
        assert!(ends.contains(&renewed), "{renewed} in {ends:?}");
        assert!(client.deadline("doc") >= renewed);
        assert_eq!(client.hash("doc"), "alice=3 mode=read");
    }
    let renewed = client.lease("doc", "alice");
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(client.leases("doc", "alice"), [renewed, renewed]);
}

#[test]
fn the_hash_lives_as_long_as_the_longest_lease() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    client.int("RLOCK.ACQUIRE doc bob 30000 READ");
    let alice = client.lease("doc", "alice");
    let bob = client.lease("doc", "bob");
    assert!(bob < alice);
    assert_eq!(client.deadline("doc"), alice);
    client.int("RLOCK.ACQUIRE doc carol 90000 READ");
    let carol = client.lease("doc", "carol");
    assert_eq!(client.deadline("doc"), carol);
    assert_eq!(client.hash("doc"), "alice=1 bob=1 carol=1 mode=read");
    assert_eq!(client.int("DBSIZE"), 4);

    assert_eq!(client.int("RLOCK.RELEASE doc carol READ"), 0);
    assert_eq!(client.hash("doc"), "alice=1 bob=1 mode=read");
    assert!(client.deadline("doc") >= alice);
    // The others' leases are theirs alone.
    let (_, ends) = lease_from(10_000, || client.int("RLOCK.RENEW doc alice 10000 READ"));
    let alice = client.lease("doc", "alice");
    assert!(ends.contains(&alice), "{alice} in {ends:?}");
    assert_eq!(client.lease("doc", "bob"), bob);
    assert!(client.deadline("doc") >= bob);
    client.int("RLOCK.RENEW doc bob 3600000 READ");
    assert_eq!(client.lease("doc", "alice"), alice);
    let bob = client.lease("doc", "bob");
    assert!(client.deadline("doc") >= bob);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    assert_eq!(client.int("RLOCK.RELEASE doc bob READ"), 0);
    client.nothing_left("doc");
}

#[test]
fn a_writer_has_a_field_and_its_lease_is_that_of_the_hash() {
    let server = Server::start();
    let mut client = server.raw();
    let (_, ends) = lease_from(60_000, || client.int("RLOCK.ACQUIRE doc alice 60000 WRITE"));
    assert_eq!(client.hash("doc"), "alice:write=1 mode=write");
    let first = client.deadline("doc");
    assert!(ends.contains(&first), "{first} in {ends:?}");
    assert_eq!(client.int("DBSIZE"), 1);

    client.int("RLOCK.ACQUIRE doc alice 1000 WRITE");
    assert_eq!(client.hash("doc"), "alice:write=2 mode=write");
    assert_eq!(client.deadline("doc"), first);
    let (_, ends) = lease_from(90_000, || client.int("RLOCK.ACQUIRE doc alice 90000 WRITE"));
    assert!(ends.contains(&client.deadline("doc")));
    let (_, ends) = lease_from(20_000, || client.int("RLOCK.RENEW doc alice 20000 WRITE"));
    let renewed = client.deadline("doc");
    assert!(ends.contains(&renewed), "{renewed} in {ends:?}");

    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 2);
    assert_eq!(client.hash("doc"), "alice:write=2 mode=write");
    assert_eq!(client.deadline("doc"), renewed);
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE ALL"), 0);
    client.nothing_left("doc");
}

#[test]
fn a_writer_that_reads_has_both_and_one_lease() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc alice 60000 WRITE");
    let first = client.deadline("doc");
    client.int("RLOCK.ACQUIRE doc alice 1000 READ");
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
    assert_eq!(client.leases("doc", "alice"), [first]);
    assert_eq!(client.deadline("doc"), first);

    // Whichever mode is spoken of, it is one lease.
    let (_, ends) = lease_from(90_000, || client.int("RLOCK.ACQUIRE doc alice 90000 WRITE"));
    let longer = client.deadline("doc");
    assert!(ends.contains(&longer), "{longer} in {ends:?}");
    assert_eq!(client.leases("doc", "alice"), [longer]);
    for mode in ["READ", "WRITE"] {
        let renew = format!("RLOCK.RENEW doc alice 30000 {mode}");
        let (_, ends) = lease_from(30_000, || client.int(&renew));
        let renewed = client.deadline("doc");
        assert!(ends.contains(&renewed), "{mode}: {renewed} in {ends:?}");
        assert_eq!(client.leases("doc", "alice"), [renewed], "{mode}");
    }

    let lease = client.deadline("doc");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
    assert_eq!(client.leases("doc", "alice"), [lease]);
    assert_eq!(client.deadline("doc"), lease);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    client.nothing_left("doc");
}

#[test]
fn a_writer_that_stops_reading_still_writes() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    client.take_read("doc", "alice");
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 1);
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
    assert_eq!(client.leases("doc", "alice").len(), 1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    assert_eq!(client.hash("doc"), "alice:write=1 mode=write");
    assert_eq!(client.int("DBSIZE"), 1);
    assert!(client.refused("RLOCK.ACQUIRE doc bob 1000 READ"));
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    client.nothing_left("doc");
}

#[test]
fn a_reader_that_becomes_the_writer_keeps_its_read_holds() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    let (_, ends) = lease_from(90_000, || client.int("RLOCK.ACQUIRE doc alice 90000 WRITE"));
    let both = "alice:write=1 alice=2 mode=write";
    assert_eq!(client.hash("doc"), both);
    let longer = client.deadline("doc");
    assert!(ends.contains(&longer), "{longer} in {ends:?}");
    assert_eq!(client.leases("doc", "alice"), [longer, longer]);
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    assert_eq!(client.hash("doc"), "alice=2 mode=read");
    assert_eq!(client.leases("doc", "alice"), [longer, longer]);
}

/// The lease of another, longer reader that left is not the writer's.
#[test]
fn a_reader_that_becomes_the_writer_keeps_its_own_lease() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc alice 60000 READ");
    client.int("RLOCK.ACQUIRE doc bob 3600000 READ");
    client.int("RLOCK.RELEASE doc bob READ");
    let own = client.lease("doc", "alice");
    client.int("RLOCK.ACQUIRE doc alice 1000 WRITE");
    assert_eq!(client.deadline("doc"), own);
    assert_eq!(client.lease("doc", "alice"), own);
}

#[test]
fn a_name_with_a_hash_tag_is_used_as_it_is() {
    let server = Server::start();
    let mut client = server.raw();
    for (key, lease) in [
        ("{acct}:7", "{acct}:7:alice:rwlock_timeout:1"),
        ("job:{7}", "job:{7}:alice:rwlock_timeout:1"),
        ("job}", "{job}}:alice:rwlock_timeout:1"),
    ] {
        client.take_read(key, "alice");
        let mut keys = client.texts("KEYS *");
        keys.sort();
        let mut expected = [key, lease];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(client.text(&format!("GET {lease}")), key);
        client.int(&format!("RLOCK.RELEASE {key} alice READ"));
        client.nothing_left(key);
    }
}

#[test]
fn what_is_refused_or_only_looks_writes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    client.take_write("page", "alice");
    let (before, changes) = (client.everything(), client.changes());
    for request in [
        "RLOCK.ACQUIRE doc carol 1000 WRITE",
        "RLOCK.ACQUIRE doc carol 1000",
        "RLOCK.ACQUIRE doc alice 1000 WRITE",
        "RLOCK.ACQUIRE doc alice 1000 READ ONCE",
        "RLOCK.ACQUIRE doc carol 1000 WRITE BLOCK 3",
        "RLOCK.ACQUIRE page carol 1000 READ",
        "RLOCK.ACQUIRE page carol 1000 WRITE",
        "RLOCK.ACQUIRE page carol 1000 READ BLOCK 3",
        "RLOCK.ACQUIRE page carol 1000",
        "RLOCK.ACQUIRE page alice 1000",
        "RLOCK.RELEASE doc carol READ",
        "RLOCK.RELEASE doc alice WRITE",
        "RLOCK.RELEASE doc alice",
        "RLOCK.RENEW page alice 1000 READ",
        "RLOCK.RENEW page alice 1000",
        "RLOCK.INFO doc",
        "RLOCK.INFO page",
    ] {
        client.ask(request);
        assert_eq!(client.changes(), changes, "{request}");
    }
    assert_eq!(client.everything(), before);
}
