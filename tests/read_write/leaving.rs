//! Waiters of a read/write lock that go before they are granted: whom they kept out
//! comes in at once.

use redis::Value;

use crate::support::ask::Ask;
use crate::support::locks::{code, Say, Waiter};
use crate::support::read_write::{
    held_by, holders, layout, nothing_left, read, wait_read, wait_write, waiters, write,
};
use crate::support::{RawClient, Server};

type Leave = fn(&mut RawClient, Waiter);

/// The ways to leave a queue; those that are answered are answered.
pub const WAYS: [(&str, Leave); 6] = [
    ("time-out", |_, mut waiter| {
        assert_eq!(waiter.client.read(), Value::Nil);
        waiter.in_step();
    }),
    ("close", |_, waiter| waiter.client.close()),
    ("CLIENT KILL", |control, mut waiter| {
        let killed = control.say(&format!("CLIENT KILL ID {}", waiter.id));
        assert_eq!(killed, Value::Int(1));
        assert!(waiter.client.is_closed());
    }),
    ("CLIENT UNBLOCK", |control, waiter| {
        unblock(control, waiter, "");
    }),
    ("CLIENT UNBLOCK TIMEOUT", |control, waiter| {
        unblock(control, waiter, "TIMEOUT");
    }),
    ("CLIENT UNBLOCK ERROR", |control, waiter| {
        unblock(control, waiter, "ERROR");
    }),
];

fn unblock(control: &mut RawClient, mut waiter: Waiter, how: &str) {
    let done = control.say(&format!("CLIENT UNBLOCK {} {how}", waiter.id));
    assert_eq!(done, Value::Int(1));
    match how {
        "ERROR" => assert_eq!(code(&waiter.client.read()), "UNBLOCKED"),
        _ => assert_eq!(waiter.client.read(), Value::Nil),
    }
    waiter.in_step();
}

/// For how long the one that leaves would wait, ms: for a time-out not much more
/// than setting up takes, so that it ends while others wait behind it.
pub fn patience(way: &str) -> u32 {
    match way {
        "time-out" => 400,
        _ => 60_000,
    }
}

#[test]
fn a_writer_that_leaves_the_head_lets_the_readers_behind_it_in() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        read(&mut client, "doc", "holder");
        let block = patience(way);
        let writer = Waiter::with(&server, &format!("doc w 1000 WRITE BLOCK {block}"));
        let mut readers = ["a", "b"].map(|owner| wait_read(&server, "doc", owner));
        let mut second = wait_write(&server, "doc", "w2");
        let mut late = wait_read(&server, "doc", "late");
        leave(&mut client, writer);
        for reader in &mut readers {
            reader.token();
        }
        let expected = ["a read 1", "b read 1", "holder read 1"];
        assert_eq!(holders(&mut client, "doc"), expected, "{way}");
        assert_eq!(waiters(&mut client, "doc"), 2, "{way}");
        assert!(client.refused("RLOCK.ACQUIRE doc new 1000 READ"), "{way}");

        for owner in ["holder", "a", "b"] {
            client.int(&format!("RLOCK.RELEASE doc {owner} READ"));
        }
        second.token();
        client.int("RLOCK.RELEASE doc w2 WRITE");
        late.token();
        client.int("RLOCK.RELEASE doc late READ");
        nothing_left(&mut client, "doc");
    }
}

#[test]
fn a_plain_request_that_leaves_the_head_lets_the_readers_behind_it_in() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        read(&mut client, "doc", "holder");
        let block = patience(way);
        let plain = Waiter::with(&server, &format!("doc p 1000 BLOCK {block}"));
        let mut reader = wait_read(&server, "doc", "a");
        leave(&mut client, plain);
        reader.token();
        assert_eq!(
            layout(&mut client, "doc"),
            "a=1 holder=1 mode=read",
            "{way}"
        );
        assert_eq!(waiters(&mut client, "doc"), 0, "{way}");
    }
}

#[test]
fn an_upgrade_that_leaves_lets_readers_in_and_leaves_the_read_lock() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        read(&mut client, "doc", "alice");
        read(&mut client, "doc", "bob");
        let block = patience(way);
        let upgrade = Waiter::with(&server, &format!("doc alice 1000 WRITE BLOCK {block}"));
        let mut reader = wait_read(&server, "doc", "carol");
        leave(&mut client, upgrade);
        reader.token();
        let expected = ["alice read 1", "bob read 1", "carol read 1"];
        assert_eq!(holders(&mut client, "doc"), expected, "{way}");
        assert_eq!(waiters(&mut client, "doc"), 0, "{way}");
        // The place is free for another upgrade.
        client.int("RLOCK.RELEASE doc carol READ");
        let mut upgrade = wait_write(&server, "doc", "bob");
        client.int("RLOCK.RELEASE doc alice READ");
        upgrade.token();
    }
}

#[test]
fn a_waiter_that_leaves_from_between_changes_nothing_for_the_others() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        write(&mut client, "doc", "holder");
        let mut ahead = wait_read(&server, "doc", "a");
        let block = patience(way);
        let gone = Waiter::with(&server, &format!("doc gone 1000 WRITE BLOCK {block}"));
        let mut behind = wait_read(&server, "doc", "b");
        leave(&mut client, gone);
        // The two readers are neighbours now.
        client.int("RLOCK.RELEASE doc holder WRITE");
        ahead.token();
        behind.token();
        held_by(&mut client, "doc", &["a read 1", "b read 1"]);

        let gone = Waiter::with(&server, &format!("doc gone 1000 WRITE BLOCK {block}"));
        let mut writer = wait_write(&server, "doc", "w");
        leave(&mut client, gone);
        assert_eq!(waiters(&mut client, "doc"), 1, "{way}");
        client.int("RLOCK.RELEASE doc a READ");
        client.int("RLOCK.RELEASE doc b READ");
        writer.token();
    }
}

#[test]
fn a_reader_that_leaves_is_not_granted() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        write(&mut client, "doc", "holder");
        let mut stays = wait_read(&server, "doc", "a");
        let block = patience(way);
        let gone = Waiter::with(&server, &format!("doc gone 1000 READ BLOCK {block}"));
        leave(&mut client, gone);
        crate::support::locks::has_waiters(&mut client, "doc", 1);
        client.int("RLOCK.RELEASE doc holder WRITE");
        stays.token();
        assert_eq!(layout(&mut client, "doc"), "a=1 mode=read", "{way}");
        assert_eq!(client.int("DBSIZE"), 2, "{way}");
    }
}

#[test]
fn granted_readers_that_are_gone_before_their_reply_hold_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    for round in 0..10 {
        client.ok("FLUSHALL");
        write(&mut client, "doc", "holder");
        let mut stays = wait_read(&server, "doc", "a");
        let gone = [0, 1].map(|n| wait_read(&server, "doc", &format!("gone{n}")));
        let mut writer = wait_write(&server, "doc", "w");
        // The grant and the end of the connections come in one go.
        let kills = gone
            .each_ref()
            .map(|gone| format!("CLIENT KILL ID {}", gone.id));
        client.at_once(&["RLOCK.RELEASE doc holder WRITE", &kills[0], &kills[1]]);
        stays.token();
        held_by(&mut client, "doc", &["a read 1"]);
        assert_eq!(waiters(&mut client, "doc"), 1, "round {round}");
        client.int("RLOCK.RELEASE doc a READ");
        writer.token();
        assert_eq!(layout(&mut client, "doc"), "mode=write w:write=1");
        assert_eq!(client.int("DBSIZE"), 1, "round {round}");
    }
}
