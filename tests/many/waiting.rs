//! Waiting for many keys: nothing is held meanwhile, a key that is free and first
//! for is reserved, and the order of arrival is one for all queues.

use redis::Value;

use crate::support::ask::{list, map, Ask};
use crate::support::locks::{holder, info, is_free, Say, Waiter, LONG};
use crate::support::read_write::{
    layout, mode, nothing_left, read, wait_read, wait_write, waiters,
};
use crate::support::{eventually, RawClient, Server};

/// A connection whose MACQUIRE stands in the queues, with these words behind it.
#[track_caller]
pub fn wait_many_with(server: &Server, keys: &str, owner: &str, words: &str) -> Waiter {
    let count = keys.split_whitespace().count();
    let mut client = server.raw();
    // In one write: whoever has the id knows that the other one waits.
    client.tell_all(&[
        "CLIENT ID",
        &format!("RLOCK.MACQUIRE {count} {keys} {owner} {LONG} {words}"),
    ]);
    let Value::Int(id) = client.read() else {
        panic!("no id");
    };
    Waiter { client, id }
}

#[track_caller]
pub fn wait_many(server: &Server, keys: &str, owner: &str) -> Waiter {
    wait_many_with(server, keys, owner, "BLOCK 0")
}

/// The key is kept free for somebody who waits for it.
#[track_caller]
pub fn is_reserved(client: &mut RawClient, key: &str) {
    assert_eq!(mode(client, key), "reserved", "{key}");
    assert_eq!(client.int(&format!("EXISTS {key}")), 0, "{key}");
}

/// Takes plain locks, one after the other.
#[track_caller]
pub fn take(client: &mut RawClient, keys: &[&str], owner: &str) {
    for key in keys {
        client.int(&format!("RLOCK.ACQUIRE {key} {owner} {LONG}"));
    }
}

/// It was not granted by what was replied to before.
#[track_caller]
pub fn still_waits(waiter: &mut Waiter) {
    let heard = waiter
        .client
        .read_within(std::time::Duration::from_millis(2));
    assert_eq!(heard, None);
}

#[test]
fn a_free_key_is_reserved_while_another_is_waited_for() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["y"], "bob");
    let mut many = wait_many(&server, "x y", "alice");
    is_reserved(&mut client, "x");
    assert_eq!(mode(&mut client, "y"), "exclusive");
    for key in ["x", "y"] {
        assert_eq!(waiters(&mut client, key), 1, "{key}");
    }
    let told = map(client.ask("RLOCK.INFO x"));
    assert!(list(told["holders"].clone()).is_empty());
    assert!(matches!(told["oldest-wait-ms"], Value::Int(ms) if ms >= 0));

    // Nobody else gets it, in whatever way.
    for request in [
        "RLOCK.ACQUIRE x carol 1000",
        "RLOCK.ACQUIRE x carol 1000 ONCE",
        "RLOCK.ACQUIRE x carol 1000 READ",
        "RLOCK.ACQUIRE x carol 1000 WRITE",
        "RLOCK.ACQUIRE x carol 1000 BLOCK 5",
        "RLOCK.MACQUIRE 1 x carol 1000",
        "RLOCK.MACQUIRE 2 x z carol 1000",
        "RLOCK.MACQUIRE 2 z x carol 1000 BLOCK 5",
    ] {
        assert!(client.refused(request), "{request}");
    }
    is_free(&mut client, "z");
    is_reserved(&mut client, "x");
    assert_eq!(client.int("RLOCK.FORCE x"), 0, "nobody holds it");
    let line = client.error("RLOCK.RELEASE x alice");
    assert!(line.starts_with("NOTHELD "), "{line}");
    is_reserved(&mut client, "x");
    still_waits(&mut many);

    let replies = client.at_once(&["RLOCK.RELEASE y bob", "HGET x alice", "HGET y alice"]);
    assert_eq!(replies[1], crate::support::ask::bulk("1"));
    assert_eq!(replies[2], crate::support::ask::bulk("1"));
    let token = many.token();
    for key in ["x", "y"] {
        let known = info(&mut client, key).holders;
        assert_eq!(known, [("alice".to_owned(), 1, Some(token))], "{key}");
        assert_eq!(waiters(&mut client, key), 0, "{key}");
    }
    assert_eq!(client.deadline("x"), client.deadline("y"));
    assert_eq!(client.int("RLOCK.MRELEASE 2 x y alice"), 2);
    is_free(&mut client, "x");
    is_free(&mut client, "y");
}

#[test]
fn a_key_that_comes_free_is_reserved_from_then_on() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["a", "b", "c"], "bob");
    let mut many = wait_many(&server, "a b c", "alice");
    for key in ["a", "b", "c"] {
        assert_eq!(mode(&mut client, key), "exclusive");
    }
    client.int("RLOCK.RELEASE b bob");
    is_reserved(&mut client, "b");
    assert!(client.refused("RLOCK.ACQUIRE b bob 1000"));
    client.int("RLOCK.RELEASE a bob");
    is_reserved(&mut client, "a");
    is_reserved(&mut client, "b");
    still_waits(&mut many);
    client.int("RLOCK.RELEASE c bob");
    many.token();
}

#[test]
fn waiters_on_a_reserved_key_come_after_it() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["y"], "bob");
    let mut many = wait_many(&server, "x y", "alice");
    let mut plain = Waiter::new(&server, "x", "p");
    let mut readers = ["r1", "r2"].map(|owner| wait_read(&server, "x", owner));
    let mut next = wait_many(&server, "x z", "n");
    assert_eq!(waiters(&mut client, "x"), 5);
    is_reserved(&mut client, "z");
    client.int("RLOCK.RELEASE y bob");
    many.token();
    assert_eq!(holder(&mut client, "x").as_deref(), Some("alice"));
    client.int("RLOCK.MRELEASE 2 x y alice");
    plain.token();
    client.int("RLOCK.RELEASE x p");
    for reader in &mut readers {
        reader.token();
    }
    assert_eq!(layout(&mut client, "x"), "mode=read r1=1 r2=1");
    assert!(
        client.refused("RLOCK.ACQUIRE x r3 1000 READ"),
        "one waits before it"
    );
    client.int("RLOCK.RELEASE x r1 READ");
    client.int("RLOCK.RELEASE x r2 READ");
    next.token();
    client.int("RLOCK.MRELEASE 2 x z n");
    nothing_left(&mut client, "x");
}

#[test]
fn it_waits_behind_those_who_came_before() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["x"], "bob");
    let mut before = Waiter::new(&server, "x", "b");
    let mut writer = wait_write(&server, "x", "w");
    let mut many = wait_many(&server, "x y", "alice");
    is_reserved(&mut client, "y");
    client.int("RLOCK.RELEASE x bob");
    before.token();
    client.int("RLOCK.RELEASE x b");
    writer.token();
    still_waits(&mut many);
    client.int("RLOCK.RELEASE x w WRITE");
    many.token();
}

#[test]
fn the_order_of_arrival_is_one_for_all_queues() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["a", "b", "c", "d"], "h");
    let mut first = wait_many(&server, "a b", "m1");
    let mut single = Waiter::new(&server, "a", "s1");
    let mut second = wait_many(&server, "c b", "m2");
    let mut third = wait_many(&server, "d c", "m3");
    let mut reader = wait_read(&server, "d", "s2");
    for key in ["a", "c", "d"] {
        client.int(&format!("RLOCK.RELEASE {key} h"));
        is_reserved(&mut client, key);
    }
    for waiter in [
        &mut first,
        &mut single,
        &mut second,
        &mut third,
        &mut reader,
    ] {
        still_waits(waiter);
    }
    client.int("RLOCK.RELEASE b h");
    let tokens = [first.token()];
    is_reserved(&mut client, "c");
    client.int("RLOCK.MRELEASE 2 b a m1");
    let tokens = [tokens[0], single.token(), second.token()];
    assert_eq!(holder(&mut client, "c").as_deref(), Some("m2"));
    is_reserved(&mut client, "d");
    client.int("RLOCK.MRELEASE 2 b c m2");
    let third = third.token();
    client.int("RLOCK.MRELEASE 2 c d m3");
    assert!(reader.token() > third);
    assert!(third > tokens[2] && tokens[2] > tokens[0]);
    for key in ["b", "c"] {
        is_free(&mut client, key);
    }
}

/// Three that overlap in a ring, and every order in which the keys come free.
#[test]
fn those_that_overlap_in_a_ring_go_in_order() {
    let server = Server::start();
    let mut client = server.raw();
    for order in ["abc", "acb", "bac", "bca", "cab", "cba"] {
        take(&mut client, &["a", "b", "c"], "h");
        let rings = [("a b", "m1"), ("b c", "m2"), ("c a", "m3")];
        let mut waiting = rings.map(|(keys, owner)| wait_many(&server, keys, owner));
        for key in order.chars() {
            client.int(&format!("RLOCK.RELEASE {key} h"));
        }
        let mut last = 0;
        for ((keys, owner), waiter) in rings.iter().zip(&mut waiting) {
            let token = waiter.token();
            assert!(token > last, "{order}: {owner}");
            last = token;
            let released = client.int(&format!("RLOCK.MRELEASE 2 {keys} {owner}"));
            assert_eq!(released, 2, "{order}: {owner}");
        }
        nothing_left(&mut client, "a");
    }
}

#[test]
fn two_that_name_the_keys_in_opposite_order_do_not_block_each_other() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["x"], "h1");
    take(&mut client, &["y"], "h2");
    let mut one = wait_many(&server, "x y", "m1");
    let mut two = wait_many(&server, "y x", "m2");
    client.int("RLOCK.RELEASE y h2");
    client.int("RLOCK.RELEASE x h1");
    one.token();
    still_waits(&mut two);
    client.int("RLOCK.RELEASE y m1");
    still_waits(&mut two);
    is_reserved(&mut client, "y");
    client.int("RLOCK.RELEASE x m1");
    two.token();
}

#[test]
fn it_waits_for_readers_and_keeps_new_ones_out() {
    let server = Server::start();
    let mut client = server.raw();
    read(&mut client, "x", "r1");
    read(&mut client, "x", "r2");
    let mut many = wait_many(&server, "x y", "alice");
    assert!(client.refused("RLOCK.ACQUIRE x r3 1000 READ"));
    read(&mut client, "x", "r1");
    client.int("RLOCK.RELEASE x r1 READ ALL");
    still_waits(&mut many);
    client.int("RLOCK.RELEASE x r2 READ");
    many.token();
    assert_eq!(layout(&mut client, "x"), "alice=1");
}

#[test]
fn a_waiters_lease_counts_from_the_grant_and_block_0_waits() {
    let server = Server::start();
    let mut client = server.raw();
    take(&mut client, &["y"], "bob");
    let mut many = wait_many(&server, "x y", "alice");
    eventually("it has waited for a while", || {
        info(&mut client, "x").oldest_wait_ms >= Some(300)
    });
    let (_, ends) = crate::support::ask::lease_from(LONG, || client.int("RLOCK.RELEASE y bob"));
    many.token();
    for key in ["x", "y"] {
        let deadline = client.deadline(key);
        assert!(ends.contains(&deadline), "{key}: {deadline} in {ends:?}");
    }
}

#[test]
fn a_release_of_many_grants_on_each_of_them() {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.MACQUIRE 4 a b c d h {LONG}"));
    let mut single = Waiter::new(&server, "a", "s");
    let mut readers = ["r1", "r2"].map(|owner| wait_read(&server, "b", owner));
    let mut many = wait_many(&server, "d c", "m");
    let replies = client.at_once(&[
        "RLOCK.MRELEASE 4 a b c d h",
        "HGETALL a",
        "HLEN b",
        "HGETALL c",
    ]);
    assert_eq!(replies[0], Value::Int(4));
    assert_eq!(replies[2], Value::Int(3));
    for (reply, owner) in [(&replies[1], "s"), (&replies[3], "m")] {
        assert_eq!(list(reply.clone())[0], crate::support::ask::bulk(owner));
    }
    single.token();
    for reader in &mut readers {
        reader.token();
    }
    many.token();
}
