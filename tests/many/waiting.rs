//! Waiting for many keys: nothing is held meanwhile, a key that is free and first
//! for is reserved, and the order of arrival is one for all queues.

use redis::Value;

use crate::support::{both_ways, bulk, eventually, lease_from, list, Ask, Server, Way, LONG};

both_ways!(a_free_key_is_reserved_while_another_is_waited_for);
fn a_free_key_is_reserved_while_another_is_waited_for(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "alice");
    client.is_reserved("x");
    assert_eq!(client.mode("y"), "exclusive");
    for key in ["x", "y"] {
        assert_eq!(client.waiters(key), 1, "{key}");
    }
    let told = client.info("x");
    assert!(told.holders.is_empty());
    assert!(told.oldest_wait_ms >= Some(0));

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
    client.is_free("z");
    client.is_reserved("x");
    assert_eq!(client.int("RLOCK.FORCE x"), 0, "nobody holds it");
    let line = client.error("RLOCK.RELEASE x alice");
    assert!(line.starts_with("NOTHELD "), "{line}");
    client.is_reserved("x");
    many.still_waits();

    let replies = client.succeed(&["RLOCK.RELEASE y bob", "HGET x alice", "HGET y alice"]);
    assert_eq!(replies[1], bulk("1"));
    assert_eq!(replies[2], bulk("1"));
    let token = many.token();
    for key in ["x", "y"] {
        let known = client.info(key);
        assert_eq!(known.holds(), [("alice", 1, Some(token))], "{key}");
        assert_eq!(known.waiters, 0, "{key}");
    }
    assert_eq!(client.deadline("x"), client.deadline("y"));
    assert_eq!(client.int("RLOCK.MRELEASE 2 x y alice"), 2);
    client.is_free("x");
    client.is_free("y");
}

both_ways!(a_key_that_comes_free_is_reserved_from_then_on);
fn a_key_that_comes_free_is_reserved_from_then_on(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("a", "bob");
    client.take("b", "bob");
    client.take("c", "bob");
    let mut many = by.many(&server, "a b c", "alice");
    for key in ["a", "b", "c"] {
        assert_eq!(client.mode(key), "exclusive");
    }
    client.int("RLOCK.RELEASE b bob");
    client.is_reserved("b");
    assert!(client.refused("RLOCK.ACQUIRE b bob 1000"));
    client.int("RLOCK.RELEASE a bob");
    client.is_reserved("a");
    client.is_reserved("b");
    many.still_waits();
    client.int("RLOCK.RELEASE c bob");
    many.token();
}

both_ways!(waiters_on_a_reserved_key_come_after_it);
fn waiters_on_a_reserved_key_come_after_it(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "alice");
    let mut plain = by.wait(&server, "x", "p");
    let mut readers = ["r1", "r2"].map(|owner| by.read(&server, "x", owner));
    let mut next = by.many(&server, "x z", "n");
    assert_eq!(client.waiters("x"), 5);
    client.is_reserved("z");
    client.int("RLOCK.RELEASE y bob");
    many.token();
    assert_eq!(client.hash("x"), "alice=1");
    client.int("RLOCK.MRELEASE 2 x y alice");
    plain.token();
    client.int("RLOCK.RELEASE x p");
    for reader in &mut readers {
        reader.token();
    }
    assert_eq!(client.hash("x"), "mode=read r1=1 r2=1");
    assert!(
        client.refused("RLOCK.ACQUIRE x r3 1000 READ"),
        "one waits before it"
    );
    client.int("RLOCK.RELEASE x r1 READ");
    client.int("RLOCK.RELEASE x r2 READ");
    next.token();
    client.int("RLOCK.MRELEASE 2 x z n");
    client.nothing_left("x");
}

both_ways!(it_waits_behind_those_who_came_before);
fn it_waits_behind_those_who_came_before(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("x", "bob");
    let mut before = by.wait(&server, "x", "b");
    let mut writer = by.write(&server, "x", "w");
    let mut many = by.many(&server, "x y", "alice");
    client.is_reserved("y");
    client.int("RLOCK.RELEASE x bob");
    before.token();
    client.int("RLOCK.RELEASE x b");
    writer.token();
    many.still_waits();
    client.int("RLOCK.RELEASE x w WRITE");
    many.token();
}

both_ways!(the_order_of_arrival_is_one_for_all_queues);
fn the_order_of_arrival_is_one_for_all_queues(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("a", "h");
    client.take("b", "h");
    client.take("c", "h");
    client.take("d", "h");
    let mut first = by.many(&server, "a b", "m1");
    let mut single = by.wait(&server, "a", "s1");
    let mut second = by.many(&server, "c b", "m2");
    let mut third = by.many(&server, "d c", "m3");
    let mut reader = by.read(&server, "d", "s2");
    for key in ["a", "c", "d"] {
        client.int(&format!("RLOCK.RELEASE {key} h"));
        client.is_reserved(key);
    }
    for waiter in [
        &mut first,
        &mut single,
        &mut second,
        &mut third,
        &mut reader,
    ] {
        waiter.still_waits();
    }
    client.int("RLOCK.RELEASE b h");
    let tokens = [first.token()];
    client.is_reserved("c");
    client.int("RLOCK.MRELEASE 2 b a m1");
    let tokens = [tokens[0], single.token(), second.token()];
    assert_eq!(client.hash("c"), "m2=1");
    client.is_reserved("d");
    client.int("RLOCK.MRELEASE 2 b c m2");
    let third = third.token();
    client.int("RLOCK.MRELEASE 2 c d m3");
    assert!(reader.token() > third);
    assert!(third > tokens[2] && tokens[2] > tokens[0]);
    for key in ["b", "c"] {
        client.is_free(key);
    }
}

both_ways!(those_that_overlap_in_a_ring_go_in_order);
/// Three that overlap in a ring, and every order in which the keys come free.
fn those_that_overlap_in_a_ring_go_in_order(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for order in ["abc", "acb", "bac", "bca", "cab", "cba"] {
        client.take("a", "h");
        client.take("b", "h");
        client.take("c", "h");
        let rings = [("a b", "m1"), ("b c", "m2"), ("c a", "m3")];
        let mut waiting = rings.map(|(keys, owner)| by.many(&server, keys, owner));
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
        client.nothing_left("a");
    }
}

both_ways!(two_that_name_the_keys_in_opposite_order_do_not_block_each_other);
fn two_that_name_the_keys_in_opposite_order_do_not_block_each_other(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("x", "h1");
    client.take("y", "h2");
    let mut one = by.many(&server, "x y", "m1");
    let mut two = by.many(&server, "y x", "m2");
    client.int("RLOCK.RELEASE y h2");
    client.int("RLOCK.RELEASE x h1");
    one.token();
    two.still_waits();
    client.int("RLOCK.RELEASE y m1");
    two.still_waits();
    client.is_reserved("y");
    client.int("RLOCK.RELEASE x m1");
    two.token();
}

both_ways!(it_waits_for_readers_and_keeps_new_ones_out);
fn it_waits_for_readers_and_keeps_new_ones_out(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("x", "r1");
    client.take_read("x", "r2");
    let mut many = by.many(&server, "x y", "alice");
    assert!(client.refused("RLOCK.ACQUIRE x r3 1000 READ"));
    client.take_read("x", "r1");
    client.int("RLOCK.RELEASE x r1 READ ALL");
    many.still_waits();
    client.int("RLOCK.RELEASE x r2 READ");
    many.token();
    assert_eq!(client.hash("x"), "alice=1");
}

both_ways!(a_waiters_lease_counts_from_the_grant_and_block_0_waits);
fn a_waiters_lease_counts_from_the_grant_and_block_0_waits(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    let mut many = by.many(&server, "x y", "alice");
    eventually("it has waited for a while", || {
        client.info("x").oldest_wait_ms >= Some(300)
    });
    let (_, ends) = lease_from(LONG, || client.int("RLOCK.RELEASE y bob"));
    many.token();
    for key in ["x", "y"] {
        let deadline = client.deadline(key);
        assert!(ends.contains(&deadline), "{key}: {deadline} in {ends:?}");
    }
}

both_ways!(a_release_of_many_grants_on_each_of_them);
fn a_release_of_many_grants_on_each_of_them(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.int(&format!("RLOCK.MACQUIRE 4 a b c d h {LONG}"));
    let mut single = by.wait(&server, "a", "s");
    let mut readers = ["r1", "r2"].map(|owner| by.read(&server, "b", owner));
    let mut many = by.many(&server, "d c", "m");
    let replies = client.succeed(&[
        "RLOCK.MRELEASE 4 a b c d h",
        "HGETALL a",
        "HLEN b",
        "HGETALL c",
    ]);
    assert_eq!(replies[0], Value::Int(4));
    assert_eq!(replies[2], Value::Int(3));
    for (reply, owner) in [(&replies[1], "s"), (&replies[3], "m")] {
        assert_eq!(list(reply.clone())[0], bulk(owner));
    }
    single.token();
    for reader in &mut readers {
        reader.token();
    }
    many.token();
}
