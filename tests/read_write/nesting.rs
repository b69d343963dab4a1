//! Holds of one owner on one read/write lock: how they nest, which token each has,
//! and that all of them end with the lease.

use crate::support::{both_ways, code, eventually, token, Ask, Server, Way};

/// So many read holds of one owner nest.
const MOST: usize = 1024;

#[test]
fn each_reader_has_a_token_of_its_own_and_nests_with_it() {
    let server = Server::start();
    let mut client = server.raw();
    let alice = client.take_read("doc", "alice");
    let bob = client.take_read("doc", "bob");
    let carol = client.take_read("doc", "carol");
    assert!(alice < bob && bob < carol, "{alice} {bob} {carol}");
    for (owner, expected) in [("alice", alice), ("carol", carol), ("bob", bob)] {
        assert_eq!(server.raw().take_read("doc", owner), expected);
        assert_eq!(client.take_read("doc", owner), expected);
        let known = client.known_token("doc", owner, "read");
        assert_eq!(known, Some(expected));
    }
    client.int("RLOCK.RELEASE doc alice READ");
    client.int("RLOCK.RENEW doc alice 60000 READ");
    assert_eq!(client.take_read("doc", "alice"), alice);

    // Who left and comes back has a new one, whoever stayed.
    client.int("RLOCK.RELEASE doc alice READ ALL");
    assert!(client.take_read("doc", "alice") > carol);
    assert_eq!(client.take_read("doc", "bob"), bob);
}

#[test]
fn reading_under_ones_own_write_has_the_token_of_the_write() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.take_write("doc", "alice");
    client.take_read("other", "bob");
    assert_eq!(client.take_read("doc", "alice"), token);
    assert_eq!(client.take_read("doc", "alice"), token);
    assert_eq!(client.take_write("doc", "alice"), token);
    for mode in ["read", "write"] {
        let known = client.known_token("doc", "alice", mode);
        assert_eq!(known, Some(token), "{mode}");
    }
    // Nothing was lost in between, so it stays after a downgrade.
    client.int("RLOCK.RELEASE doc alice WRITE ALL");
    assert_eq!(client.take_read("doc", "alice"), token);
    assert!(client.take_read("doc", "bob") > token);
}

both_ways!(an_upgrade_has_a_new_token);
fn an_upgrade_has_a_new_token(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let reader = client.take_read("doc", "alice");
    let between = client.take_read("other", "bob");
    let writer = client.take_write("doc", "alice");
    assert!(reader < between && between < writer);
    assert_eq!(client.take_write("doc", "alice"), writer);
    assert_eq!(client.take_read("doc", "alice"), writer);
    let known = client.known_token("doc", "alice", "write");
    assert_eq!(known, Some(writer));

    // Also one that had to wait.
    client.ok("FLUSHALL");
    let reader = client.take_read("doc", "alice");
    let other = client.take_read("doc", "bob");
    let mut upgrade = by.write(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc bob READ");
    let writer = upgrade.token();
    assert!(reader < other && other < writer);
    assert_eq!(client.take_write("doc", "alice"), writer);
}

#[test]
fn write_holds_nest_and_count_apart_from_read_holds() {
    let server = Server::start();
    let mut client = server.raw();
    for count in 1..=5 {
        client.take_write("doc", "alice");
        client.take_read("doc", "alice");
        client.take_read("doc", "alice");
        let expected = format!("alice:write={count} alice={} mode=write", 2 * count);
        assert_eq!(client.hash("doc"), expected);
    }
    for left in (0..5).rev() {
        assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), left);
    }
    for left in (0..10).rev() {
        assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), left);
    }
    client.nothing_left("doc");
}

#[test]
fn read_holds_nest_1024_deep() {
    let server = Server::start();
    let mut client = server.raw();
    let one = "RLOCK.ACQUIRE doc alice 100000 READ";
    let tokens: Vec<i64> = client
        .succeed(&[one; MOST])
        .into_iter()
        .map(token)
        .collect();
    assert!(tokens.iter().all(|one| *one == tokens[0]));
    let expected = format!("alice={MOST} mode=read");
    assert_eq!(client.hash("doc"), expected);
    assert_eq!(client.leases("doc", "alice").len(), MOST);
    let before = client.everything();
    for more in ["", "BLOCK 0"] {
        let line = client.error(&format!("{one} {more}"));
        assert!(line.starts_with("ERR ") && line.contains("alice"), "{line}");
    }
    assert_eq!(client.everything(), before);
    // It is a bound for one owner, and for what is held at a time.
    client.take_read("doc", "bob");
    let left = client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(left, MOST as i64 - 1);
    client.take_read("doc", "alice");
    client.int("RLOCK.RENEW doc alice 200000 READ");
    let found = client.leases("doc", "alice");
    assert_eq!(found.len(), MOST);
    assert!(found.iter().all(|one| *one == found[0]));
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ ALL"), 0);
    client.int("RLOCK.RELEASE doc bob READ");
    client.succeed(&[one; MOST]);
    assert_eq!(client.int("RLOCK.FORCE doc"), 1);
    client.nothing_left("doc");
    client.take_read("doc", "bob");
    assert_eq!(client.int("RLOCK.RELEASE doc bob READ"), 0);
    client.nothing_left("doc");
}

both_ways!(a_reader_nests_at_once_while_a_writer_waits);
fn a_reader_nests_at_once_while_a_writer_waits(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let alice = client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "bob");
    assert_eq!(client.take_read("doc", "alice"), alice);
    let blocking = "RLOCK.ACQUIRE doc alice 1000 READ BLOCK 0";
    assert_eq!(client.int(blocking), alice);
    assert!(client.refused("RLOCK.ACQUIRE doc carol 1000 READ"));
    assert_eq!(client.hash("doc"), "alice=3 mode=read");
    assert_eq!(client.waiters("doc"), 1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 2);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 1);
    assert_eq!(client.waiters("doc"), 1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    writer.token();
    assert_eq!(client.hash("doc"), "bob:write=1 mode=write");
}

both_ways!(a_writer_nests_and_reads_at_once_while_others_wait);
fn a_writer_nests_and_reads_at_once_while_others_wait(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.take_write("doc", "alice");
    let mut writer = by.write(&server, "doc", "bob");
    let mut reader = by.read(&server, "doc", "carol");
    let blocking = "RLOCK.ACQUIRE doc alice 1000 WRITE BLOCK 0";
    assert_eq!(client.int(blocking), token);
    let reading = "RLOCK.ACQUIRE doc alice 1000 READ BLOCK 0";
    assert_eq!(client.int(reading), token);
    assert_eq!(client.waiters("doc"), 2);
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 1);
    assert_eq!(client.waiters("doc"), 2);
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    writer.token();
    client.int("RLOCK.RELEASE doc bob WRITE");
    reader.token();
}

#[test]
fn all_holds_of_an_owner_end_with_its_lease() {
    let server = Server::start();
    let mut client = server.raw();
    // In one go, so that none has ended before the last.
    let replies = client.succeed(&[
        "RLOCK.ACQUIRE doc alice 400 READ",
        "RLOCK.ACQUIRE doc alice 400 READ",
        "RLOCK.ACQUIRE doc alice 400 WRITE",
        "RLOCK.ACQUIRE doc alice 400 WRITE",
    ]);
    let last = token(replies[3].clone());
    eventually("the lease is over", || client.int("DBSIZE") == 0);
    client.nothing_left("doc");
    for mode in ["READ", "WRITE"] {
        let line = client.error(&format!("RLOCK.RELEASE doc alice {mode}"));
        assert!(line.starts_with("NOTHELD "), "{line}");
        let line = client.error(&format!("RLOCK.RENEW doc alice 1000 {mode}"));
        assert!(line.starts_with("NOTHELD "), "{line}");
    }
    assert!(client.take_read("doc", "alice") > last);
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
}

both_ways!(a_waiter_whose_owner_came_to_hold_the_lock_is_judged_anew);
fn a_waiter_whose_owner_came_to_hold_the_lock_is_judged_anew(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "holder");
    let mut reads = by.read(&server, "doc", "alice");
    let mut reads_again = by.read(&server, "doc", "alice");
    let mut plain = by.wait(&server, "doc", "alice");
    let mut writes = by.write(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc holder WRITE");

    let first = reads.token();
    assert_eq!(reads_again.token(), first, "nested");
    let reply = plain.end();
    assert_eq!(code(&reply), "WRONGMODE");
    assert!(writes.token() > first, "upgraded");
    let both = "alice:write=1 alice=2 mode=write";
    assert_eq!(client.hash("doc"), both);
    assert_eq!(client.waiters("doc"), 0);
    for waiter in [&mut reads, &mut reads_again, &mut plain, &mut writes] {
        waiter.client.in_step();
    }
}

both_ways!(a_waiting_reader_is_granted_as_soon_as_its_owner_writes);
fn a_waiting_reader_is_granted_as_soon_as_its_owner_writes(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "holder");
    let mut writes = by.write(&server, "doc", "alice");
    let mut other = by.read(&server, "doc", "bob");
    let mut reads = by.read(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc holder WRITE");
    let token = writes.token();
    assert_eq!(reads.token(), token, "READ under one's own WRITE");
    client.goes_to("doc", "alice write 1, alice read 1");
    assert_eq!(client.waiters("doc"), 1);
    client.int("RLOCK.RELEASE doc alice WRITE");
    other.token();
    client.goes_to("doc", "alice read 1, bob read 1");
}
