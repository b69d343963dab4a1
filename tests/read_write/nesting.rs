//! Holds of one owner on one read/write lock: how they nest, which token each has,
//! and that all of them end with the lease.

use redis::Value;

use crate::support::ask::Ask;
use crate::support::locks::token;
use crate::support::read_write::{
    everything, held_by, known_token, layout, leases, nothing_left, read, wait_read, wait_write,
    waiters, write,
};
use crate::support::{eventually, Server};

/// So many read holds of one owner nest.
const MOST: usize = 1024;

#[test]
fn each_reader_has_a_token_of_its_own_and_nests_with_it() {
    let server = Server::start();
    let mut client = server.raw();
    let alice = read(&mut client, "doc", "alice");
    let bob = read(&mut client, "doc", "bob");
    let carol = read(&mut client, "doc", "carol");
    assert!(alice < bob && bob < carol, "{alice} {bob} {carol}");
    for (owner, expected) in [("alice", alice), ("carol", carol), ("bob", bob)] {
        assert_eq!(read(&mut server.raw(), "doc", owner), expected);
        assert_eq!(read(&mut client, "doc", owner), expected);
        let known = known_token(&mut client, "doc", owner, "read");
        assert_eq!(known, Value::Int(expected));
    }
    client.int("RLOCK.RELEASE doc alice READ");
    client.int("RLOCK.RENEW doc alice 60000 READ");
    assert_eq!(read(&mut client, "doc", "alice"), alice);

    // Who left and comes back has a new one, whoever stayed.
    client.int("RLOCK.RELEASE doc alice READ ALL");
    assert!(read(&mut client, "doc", "alice") > carol);
    assert_eq!(read(&mut client, "doc", "bob"), bob);
}

#[test]
fn reading_under_ones_own_write_has_the_token_of_the_write() {
    let server = Server::start();
    let mut client = server.raw();
    let token = write(&mut client, "doc", "alice");
    read(&mut client, "other", "bob");
    assert_eq!(read(&mut client, "doc", "alice"), token);
    assert_eq!(read(&mut client, "doc", "alice"), token);
    assert_eq!(write(&mut client, "doc", "alice"), token);
    for mode in ["read", "write"] {
        let known = known_token(&mut client, "doc", "alice", mode);
        assert_eq!(known, Value::Int(token), "{mode}");
    }
    // Nothing was lost in between, so it stays after a downgrade.
    client.int("RLOCK.RELEASE doc alice WRITE ALL");
    assert_eq!(read(&mut client, "doc", "alice"), token);
    assert!(read(&mut client, "doc", "bob") > token);
}

#[test]
fn an_upgrade_has_a_new_token() {
    let server = Server::start();
    let mut client = server.raw();
    let reader = read(&mut client, "doc", "alice");
    let between = read(&mut client, "other", "bob");
    let writer = write(&mut client, "doc", "alice");
    assert!(reader < between && between < writer);
    assert_eq!(write(&mut client, "doc", "alice"), writer);
    assert_eq!(read(&mut client, "doc", "alice"), writer);
    let known = known_token(&mut client, "doc", "alice", "write");
    assert_eq!(known, Value::Int(writer));

    // Also one that had to wait.
    client.ok("FLUSHALL");
    let reader = read(&mut client, "doc", "alice");
    let other = read(&mut client, "doc", "bob");
    let mut upgrade = wait_write(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc bob READ");
    let writer = upgrade.token();
    assert!(reader < other && other < writer);
    assert_eq!(write(&mut client, "doc", "alice"), writer);
}

#[test]
fn write_holds_nest_and_count_apart_from_read_holds() {
    let server = Server::start();
    let mut client = server.raw();
    for count in 1..=5 {
        write(&mut client, "doc", "alice");
        read(&mut client, "doc", "alice");
        read(&mut client, "doc", "alice");
        let expected = format!("alice:write={count} alice={} mode=write", 2 * count);
        assert_eq!(layout(&mut client, "doc"), expected);
    }
    for left in (0..5).rev() {
        assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), left);
    }
    for left in (0..10).rev() {
        assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), left);
    }
    nothing_left(&mut client, "doc");
}

#[test]
fn read_holds_nest_1024_deep() {
    let server = Server::start();
    let mut client = server.raw();
    let one = "RLOCK.ACQUIRE doc alice 100000 READ";
    let tokens: Vec<i64> = client
        .at_once(&[one; MOST])
        .into_iter()
        .map(token)
        .collect();
    assert!(tokens.iter().all(|one| *one == tokens[0]));
    let expected = format!("alice={MOST} mode=read");
    assert_eq!(layout(&mut client, "doc"), expected);
    assert_eq!(leases(&mut client, "doc", "alice").len(), MOST);
    let before = everything(&mut client);
    for more in ["", "BLOCK 0"] {
        let line = client.error(&format!("{one} {more}"));
        assert!(line.starts_with("ERR ") && line.contains("alice"), "{line}");
    }
    assert_eq!(everything(&mut client), before);
    // It is a bound for one owner, and for what is held at a time.
    read(&mut client, "doc", "bob");
    let left = client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(left, MOST as i64 - 1);
    read(&mut client, "doc", "alice");
    client.int("RLOCK.RENEW doc alice 200000 READ");
    let found = leases(&mut client, "doc", "alice");
    assert_eq!(found.len(), MOST);
    assert!(found.iter().all(|one| *one == found[0]));
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ ALL"), 0);
    assert_eq!(client.int("RLOCK.RELEASE doc bob READ"), 0);
    nothing_left(&mut client, "doc");
}

#[test]
fn a_reader_nests_at_once_while_a_writer_waits() {
    let server = Server::start();
    let mut client = server.raw();
    let alice = read(&mut client, "doc", "alice");
    let mut writer = wait_write(&server, "doc", "bob");
    assert_eq!(read(&mut client, "doc", "alice"), alice);
    let blocking = "RLOCK.ACQUIRE doc alice 1000 READ BLOCK 0";
    assert_eq!(client.int(blocking), alice);
    assert!(client.refused("RLOCK.ACQUIRE doc carol 1000 READ"));
    assert_eq!(layout(&mut client, "doc"), "alice=3 mode=read");
    assert_eq!(waiters(&mut client, "doc"), 1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 2);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 1);
    assert_eq!(waiters(&mut client, "doc"), 1);
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ"), 0);
    writer.token();
    assert_eq!(layout(&mut client, "doc"), "bob:write=1 mode=write");
}

#[test]
fn a_writer_nests_and_reads_at_once_while_others_wait() {
    let server = Server::start();
    let mut client = server.raw();
    let token = write(&mut client, "doc", "alice");
    let mut writer = wait_write(&server, "doc", "bob");
    let mut reader = wait_read(&server, "doc", "carol");
    let blocking = "RLOCK.ACQUIRE doc alice 1000 WRITE BLOCK 0";
    assert_eq!(client.int(blocking), token);
    let reading = "RLOCK.ACQUIRE doc alice 1000 READ BLOCK 0";
    assert_eq!(client.int(reading), token);
    assert_eq!(waiters(&mut client, "doc"), 2);
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 1);
    assert_eq!(waiters(&mut client, "doc"), 2);
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
    let replies = client.at_once(&[
        "RLOCK.ACQUIRE doc alice 400 READ",
        "RLOCK.ACQUIRE doc alice 400 READ",
        "RLOCK.ACQUIRE doc alice 400 WRITE",
        "RLOCK.ACQUIRE doc alice 400 WRITE",
    ]);
    let last = token(replies[3].clone());
    eventually("the lease is over", || client.int("DBSIZE") == 0);
    nothing_left(&mut client, "doc");
    for mode in ["READ", "WRITE"] {
        let line = client.error(&format!("RLOCK.RELEASE doc alice {mode}"));
        assert!(line.starts_with("NOTHELD "), "{line}");
        let line = client.error(&format!("RLOCK.RENEW doc alice 1000 {mode}"));
        assert!(line.starts_with("NOTHELD "), "{line}");
    }
    assert!(read(&mut client, "doc", "alice") > last);
    assert_eq!(layout(&mut client, "doc"), "alice=1 mode=read");
}

#[test]
fn a_waiter_whose_owner_came_to_hold_the_lock_is_judged_anew() {
    let server = Server::start();
    let mut client = server.raw();
    write(&mut client, "doc", "holder");
    let mut reads = wait_read(&server, "doc", "alice");
    let mut reads_again = wait_read(&server, "doc", "alice");
    let once = "doc alice 100000 READ ONCE BLOCK 0";
    let mut reads_once = crate::support::locks::Waiter::with(&server, once);
    let mut plain = crate::support::locks::Waiter::new(&server, "doc", "alice");
    let mut writes = wait_write(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc holder WRITE");

    let first = reads.token();
    assert_eq!(reads_again.token(), first, "nested");
    let reply = reads_once.client.read();
    assert_eq!(crate::support::locks::code(&reply), "HELD");
    let reply = plain.client.read();
    assert_eq!(crate::support::locks::code(&reply), "WRONGMODE");
    assert!(writes.token() > first, "upgraded");
    let both = "alice:write=1 alice=2 mode=write";
    assert_eq!(layout(&mut client, "doc"), both);
    assert_eq!(waiters(&mut client, "doc"), 0);
    for waiter in [&mut reads, &mut reads_once, &mut plain, &mut writes] {
        waiter.in_step();
    }
}

#[test]
fn a_waiting_reader_is_granted_as_soon_as_its_owner_writes() {
    let server = Server::start();
    let mut client = server.raw();
    write(&mut client, "doc", "holder");
    let mut writes = wait_write(&server, "doc", "alice");
    let mut other = wait_read(&server, "doc", "bob");
    let mut reads = wait_read(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc holder WRITE");
    let token = writes.token();
    assert_eq!(reads.token(), token, "READ under one's own WRITE");
    held_by(&mut client, "doc", &["alice read 1", "alice write 1"]);
    assert_eq!(waiters(&mut client, "doc"), 1);
    client.int("RLOCK.RELEASE doc alice WRITE");
    other.token();
    held_by(&mut client, "doc", &["alice read 1", "bob read 1"]);
}
