//! Requests for many keys that go before they are granted: whoever was kept from a
//! reserved key has it at once.

use redis::Value;

use crate::support::{both_ways, each, Ask, Leave, Server, Way, LONG};

both_ways!(reservations_end_with_the_request_and_others_come_in);
fn reservations_end_with_the_request_and_others_come_in(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take("y", "bob");
        let block = way.block();
        let gone = by.many_with(server, "x y z", "gone", block);
        let mut plain = by.wait(server, "x", "p");
        let mut readers = ["r1", "r2"].map(|owner| by.read(server, "z", owner));
        let mut behind = by.wait(server, "y", "b");
        way.leave(client, gone);
        plain.token();
        for reader in &mut readers {
            reader.token();
        }
        client.goes_to("z", "r1 read 1, r2 read 1");
        for key in ["x", "z"] {
            assert_eq!(client.waiters(key), 0, "{way:?}: {key}");
        }
        assert_eq!(client.waiters("y"), 1, "{way:?}");
        client.int("RLOCK.RELEASE y bob");
        behind.token();
        for release in [
            "RLOCK.RELEASE y b",
            "RLOCK.RELEASE x p",
            "RLOCK.RELEASE z r1 READ",
            "RLOCK.RELEASE z r2 READ",
        ] {
            assert_eq!(client.int(release), 0, "{way:?}: {release}");
        }
        client.nothing_left("y");
    });
}

both_ways!(a_reserved_key_that_nobody_waits_for_is_free_again);
fn a_reserved_key_that_nobody_waits_for_is_free_again(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take("y", "bob");
        let block = way.block();
        let gone = by.many_with(server, "x y", "gone", block);
        way.leave(client, gone);
        client.has_waiters("x", 0);
        client.is_free("x");
        client.take("x", "c");
        assert_eq!(client.waiters("y"), 0, "{way:?}");
        client.int("RLOCK.RELEASE y bob");
        client.is_free("y");
    });
}

both_ways!(the_next_of_many_inherits_what_is_free);
fn the_next_of_many_inherits_what_is_free(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take("held", "bob");
        let block = way.block();
        let gone = by.many_with(server, "held x y", "gone", block);
        let mut pair = by.many(server, "y x", "pair");
        let mut waits = by.many(server, "held z", "waits");
        way.leave(client, gone);
        pair.token();
        client.is_reserved("z");
        client.int("RLOCK.RELEASE held bob");
        waits.token();
        assert_eq!(client.hash("held"), "waits=1");
    });
}

both_ways!(one_that_leaves_from_between_changes_nothing_for_the_others);
fn one_that_leaves_from_between_changes_nothing_for_the_others(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.int(&format!("RLOCK.MACQUIRE 2 x y h {LONG}"));
        let mut ahead = by.many(server, "x y", "ahead");
        let block = way.block();
        let gone = by.many_with(server, "y x", "gone", block);
        let mut behind = by.many(server, "x y", "behind");
        way.leave(client, gone);
        client.has_waiters("x", 2);
        client.has_waiters("y", 2);
        client.int("RLOCK.MRELEASE 2 x y h");
        ahead.token();
        client.int("RLOCK.MRELEASE 2 x y ahead");
        behind.token();
        client.int("RLOCK.MRELEASE 2 x y behind");
        client.nothing_left("x");
    });
}

both_ways!(a_block_time_ends_with_null_and_not_before_it_is_over);
fn a_block_time_ends_with_null_and_not_before_it_is_over(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("y", "bob");
    for ms in [1, 40, 150] {
        let start = std::time::Instant::now();
        let block = format!("BLOCK {ms}");
        let mut many = by.many_with(&server, "x y z", "m", &block);
        assert_eq!(many.end(), Value::Nil);
        let waited = start.elapsed();
        assert!(waited.as_millis() >= ms, "{waited:?} of {ms} ms");
        many.client.in_step();
        client.is_free("x");
        client.is_free("z");
    }
}

both_ways!(a_granted_request_whose_client_is_gone_holds_nothing);
/// The grant and the end of the connection come in one go.
fn a_granted_request_whose_client_is_gone_holds_nothing(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for round in 0..10 {
        client.take("y", "bob");
        let gone = by.many(&server, "x y z", "gone");
        let mut next = by.many(&server, "z y", "next");
        let mut single = by.wait(&server, "x", "s");
        let kill = format!("CLIENT KILL ID {}", gone.id);
        client.succeed(&["RLOCK.RELEASE y bob", &kill]);
        next.token();
        single.token();
        for (key, owner) in [("x", "s"), ("y", "next"), ("z", "next")] {
            let expected = format!("{owner}=1");
            assert_eq!(client.hash(key), expected, "round {round}: {key}");
        }
        assert_eq!(client.int("RLOCK.MRELEASE 2 y z next"), 2);
        assert_eq!(client.int("RLOCK.RELEASE x s"), 0);
        client.nothing_left("x");
    }
}
