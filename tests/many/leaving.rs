//! Requests for many keys that go before they are granted: whoever was kept from a
//! reserved key has it at once.

use redis::Value;

use super::waiting::{is_reserved, wait_many, wait_many_with};
use crate::read_write::leaving::{patience, WAYS};
use crate::support::ask::Ask;
use crate::support::locks::{has_waiters, holder, is_free, Waiter, LONG};
use crate::support::read_write::{held_by, nothing_left, wait_read, waiters};
use crate::support::Server;

#[test]
fn reservations_end_with_the_request_and_others_come_in() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
        let block = format!("BLOCK {}", patience(way));
        let gone = wait_many_with(&server, "x y z", "gone", &block);
        let mut plain = Waiter::new(&server, "x", "p");
        let mut readers = ["r1", "r2"].map(|owner| wait_read(&server, "z", owner));
        let mut behind = Waiter::new(&server, "y", "b");
        leave(&mut client, gone);
        plain.token();
        for reader in &mut readers {
            reader.token();
        }
        held_by(&mut client, "z", &["r1 read 1", "r2 read 1"]);
        for key in ["x", "z"] {
            assert_eq!(waiters(&mut client, key), 0, "{way}: {key}");
        }
        assert_eq!(waiters(&mut client, "y"), 1, "{way}");
        client.int("RLOCK.RELEASE y bob");
        behind.token();
        for release in [
            "RLOCK.RELEASE y b",
            "RLOCK.RELEASE x p",
            "RLOCK.RELEASE z r1 READ",
            "RLOCK.RELEASE z r2 READ",
        ] {
            assert_eq!(client.int(release), 0, "{way}: {release}");
        }
        nothing_left(&mut client, "y");
    }
}

#[test]
fn a_reserved_key_that_nobody_waits_for_is_free_again() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
        let block = format!("BLOCK {}", patience(way));
        let gone = wait_many_with(&server, "x y", "gone", &block);
        leave(&mut client, gone);
        has_waiters(&mut client, "x", 0);
        is_free(&mut client, "x");
        client.int(&format!("RLOCK.ACQUIRE x c {LONG}"));
        assert_eq!(waiters(&mut client, "y"), 0, "{way}");
        client.int("RLOCK.RELEASE y bob");
        is_free(&mut client, "y");
    }
}

#[test]
fn the_next_of_many_inherits_what_is_free() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.ACQUIRE held bob {LONG}"));
        let block = format!("BLOCK {}", patience(way));
        let gone = wait_many_with(&server, "held x y", "gone", &block);
        let mut pair = wait_many(&server, "y x", "pair");
        let mut waits = wait_many(&server, "held z", "waits");
        leave(&mut client, gone);
        pair.token();
        is_reserved(&mut client, "z");
        client.int("RLOCK.RELEASE held bob");
        waits.token();
        assert_eq!(holder(&mut client, "held").as_deref(), Some("waits"));
    }
}

#[test]
fn one_that_leaves_from_between_changes_nothing_for_the_others() {
    let server = Server::start();
    for (way, leave) in WAYS {
        println!("{way}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        client.int(&format!("RLOCK.MACQUIRE 2 x y h {LONG}"));
        let mut ahead = wait_many(&server, "x y", "ahead");
        let block = format!("BLOCK {}", patience(way));
        let gone = wait_many_with(&server, "y x", "gone", &block);
        let mut behind = wait_many(&server, "x y", "behind");
        leave(&mut client, gone);
        has_waiters(&mut client, "x", 2);
        has_waiters(&mut client, "y", 2);
        client.int("RLOCK.MRELEASE 2 x y h");
        ahead.token();
        client.int("RLOCK.MRELEASE 2 x y ahead");
        behind.token();
        client.int("RLOCK.MRELEASE 2 x y behind");
        nothing_left(&mut client, "x");
    }
}

#[test]
fn a_block_time_ends_with_null_and_not_before_it_is_over() {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
    for ms in [1, 40, 150] {
        let start = std::time::Instant::now();
        let block = format!("BLOCK {ms}");
        let mut many = wait_many_with(&server, "x y z", "m", &block);
        assert_eq!(many.client.read(), Value::Nil);
        let waited = start.elapsed();
        assert!(waited.as_millis() >= ms, "{waited:?} of {ms} ms");
        many.in_step();
        is_free(&mut client, "x");
        is_free(&mut client, "z");
    }
}

/// The grant and the end of the connection come in one go.
#[test]
fn a_granted_request_whose_client_is_gone_holds_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    for round in 0..10 {
        client.int(&format!("RLOCK.ACQUIRE y bob {LONG}"));
        let gone = wait_many(&server, "x y z", "gone");
        let mut next = wait_many(&server, "z y", "next");
        let mut single = Waiter::new(&server, "x", "s");
        let kill = format!("CLIENT KILL ID {}", gone.id);
        client.at_once(&["RLOCK.RELEASE y bob", &kill]);
        next.token();
        single.token();
        for (key, owner) in [("x", "s"), ("y", "next"), ("z", "next")] {
            let found = holder(&mut client, key);
            assert_eq!(found.as_deref(), Some(owner), "round {round}: {key}");
        }
        assert_eq!(client.int("RLOCK.MRELEASE 2 y z next"), 2);
        assert_eq!(client.int("RLOCK.RELEASE x s"), 0);
        nothing_left(&mut client, "x");
    }
}
