//! Waiters of a read/write lock that go before they are granted: whom they kept out
//! comes in at once.

use crate::support::{both_ways, each, Ask, Leave, Server, Way};

both_ways!(a_writer_that_leaves_the_head_lets_the_readers_behind_it_in);
fn a_writer_that_leaves_the_head_lets_the_readers_behind_it_in(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take_read("doc", "holder");
        let block = way.block();
        let writer = by.with(server, &format!("doc w 1000 WRITE {block}"));
        let mut readers = ["a", "b"].map(|owner| by.read(server, "doc", owner));
        let mut second = by.write(server, "doc", "w2");
        let mut late = by.read(server, "doc", "late");
        way.leave(client, writer);
        for reader in &mut readers {
            reader.token();
        }
        let expected = "a read 1, b read 1, holder read 1";
        assert_eq!(client.held_by("doc"), expected, "{way:?}");
        assert_eq!(client.waiters("doc"), 2, "{way:?}");
        assert!(client.refused("RLOCK.ACQUIRE doc new 1000 READ"), "{way:?}");

        for owner in ["holder", "a", "b"] {
            client.int(&format!("RLOCK.RELEASE doc {owner} READ"));
        }
        second.token();
        client.int("RLOCK.RELEASE doc w2 WRITE");
        late.token();
        client.int("RLOCK.RELEASE doc late READ");
        client.nothing_left("doc");
    });
}

both_ways!(a_plain_request_that_leaves_the_head_lets_the_readers_behind_it_in);
fn a_plain_request_that_leaves_the_head_lets_the_readers_behind_it_in(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take_read("doc", "holder");
        let block = way.block();
        let plain = by.with(server, &format!("doc p 1000 {block}"));
        let mut reader = by.read(server, "doc", "a");
        way.leave(client, plain);
        reader.token();
        assert_eq!(client.hash("doc"), "a=1 holder=1 mode=read", "{way:?}");
        assert_eq!(client.waiters("doc"), 0, "{way:?}");
    });
}

both_ways!(an_upgrade_that_leaves_lets_readers_in_and_leaves_the_read_lock);
fn an_upgrade_that_leaves_lets_readers_in_and_leaves_the_read_lock(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take_read("doc", "alice");
        client.take_read("doc", "bob");
        let block = way.block();
        let upgrade = by.with(server, &format!("doc alice 1000 WRITE {block}"));
        let mut reader = by.read(server, "doc", "carol");
        way.leave(client, upgrade);
        reader.token();
        let expected = "alice read 1, bob read 1, carol read 1";
        assert_eq!(client.held_by("doc"), expected, "{way:?}");
        assert_eq!(client.waiters("doc"), 0, "{way:?}");
        // The place is free for another upgrade.
        client.int("RLOCK.RELEASE doc carol READ");
        let mut upgrade = by.write(server, "doc", "bob");
        client.int("RLOCK.RELEASE doc alice READ");
        upgrade.token();
    });
}

both_ways!(a_waiter_that_leaves_from_between_changes_nothing_for_the_others);
fn a_waiter_that_leaves_from_between_changes_nothing_for_the_others(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take_write("doc", "holder");
        let mut ahead = by.read(server, "doc", "a");
        let block = way.block();
        let gone = by.with(server, &format!("doc gone 1000 WRITE {block}"));
        let mut behind = by.read(server, "doc", "b");
        way.leave(client, gone);
        // The two readers are neighbours now.
        client.int("RLOCK.RELEASE doc holder WRITE");
        ahead.token();
        behind.token();
        client.goes_to("doc", "a read 1, b read 1");

        let gone = by.with(server, &format!("doc gone 1000 WRITE {block}"));
        let mut writer = by.write(server, "doc", "w");
        way.leave(client, gone);
        client.has_waiters("doc", 1);
        client.int("RLOCK.RELEASE doc a READ");
        client.int("RLOCK.RELEASE doc b READ");
        writer.token();
    });
}

both_ways!(a_reader_that_leaves_is_not_granted);
fn a_reader_that_leaves_is_not_granted(by: Way) {
    each(&Leave::all(by), |way, server, client| {
        client.take_write("doc", "holder");
        let mut stays = by.read(server, "doc", "a");
        let block = way.block();
        let gone = by.with(server, &format!("doc gone 1000 READ {block}"));
        way.leave(client, gone);
        client.has_waiters("doc", 1);
        client.int("RLOCK.RELEASE doc holder WRITE");
        stays.token();
        assert_eq!(client.hash("doc"), "a=1 mode=read", "{way:?}");
        assert_eq!(client.int("DBSIZE"), 2, "{way:?}");
    });
}

both_ways!(granted_readers_that_are_gone_before_their_reply_hold_nothing);
fn granted_readers_that_are_gone_before_their_reply_hold_nothing(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for round in 0..10 {
        client.ok("FLUSHALL");
        client.take_write("doc", "holder");
        let mut stays = by.read(&server, "doc", "a");
        let gone = [0, 1].map(|n| by.read(&server, "doc", &format!("gone{n}")));
        let mut writer = by.write(&server, "doc", "w");
        // The grant and the end of the connections come in one go.
        let kills = gone
            .each_ref()
            .map(|gone| format!("CLIENT KILL ID {}", gone.id));
        client.succeed(&["RLOCK.RELEASE doc holder WRITE", &kills[0], &kills[1]]);
        stays.token();
        client.goes_to("doc", "a read 1");
        assert_eq!(client.waiters("doc"), 1, "round {round}");
        client.int("RLOCK.RELEASE doc a READ");
        writer.token();
        assert_eq!(client.hash("doc"), "mode=write w:write=1");
        assert_eq!(client.int("DBSIZE"), 1, "round {round}");
    }
}
