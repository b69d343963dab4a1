//! From writer to reader, and from reader to writer.

use crate::support::{both_ways, eventually, int, lease_key, now_ms, pass, Ask, Server, Way};

both_ways!(a_writer_that_goes_on_reading_lets_the_readers_at_the_head_in);
fn a_writer_that_goes_on_reading_lets_the_readers_at_the_head_in(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let mut writer = by.write(&server, "doc", "w");
    let mut late = by.read(&server, "doc", "late");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    assert_eq!(client.hash("doc"), "a=1 alice=1 b=1 mode=read");
    for reader in &mut readers {
        reader.token();
    }
    assert_eq!(client.waiters("doc"), 2);
    assert!(client.refused("RLOCK.ACQUIRE doc new 1000 READ"));
    for owner in ["alice", "a", "b"] {
        client.int(&format!("RLOCK.RELEASE doc {owner} READ"));
    }
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    late.token();
}

both_ways!(a_writer_ahead_of_the_readers_keeps_them_out_of_a_downgrade);
fn a_writer_ahead_of_the_readers_keeps_them_out_of_a_downgrade(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "a");
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(client.hash("doc"), "alice=1 mode=read");
    assert_eq!(client.waiters("doc"), 2);
    client.int("RLOCK.RELEASE doc alice READ");
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();
}

both_ways!(nobody_comes_in_while_a_nested_write_hold_is_left);
fn nobody_comes_in_while_a_nested_write_hold_is_left(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    let mut reader = by.read(&server, "doc", "a");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 1);
    assert_eq!(client.waiters("doc"), 1);
    assert_eq!(client.mode("doc"), "write");
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    reader.token();
    client.goes_to("doc", "a read 1, alice read 1");
}

both_ways!(a_sole_reader_becomes_the_writer_at_once);
fn a_sole_reader_becomes_the_writer_at_once(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "alice");
    // Ahead of all who wait, also without BLOCK.
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "a");
    client.take_write("doc", "alice");
    let both = "alice:write=1 alice=2 mode=write";
    assert_eq!(client.hash("doc"), both);
    assert_eq!(client.waiters("doc"), 2);
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(client.waiters("doc"), 2);
    client.int("RLOCK.RELEASE doc alice READ ALL");
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();
}

#[test]
fn an_upgrade_beside_other_readers_is_refused_without_block() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let (before, changes) = (client.everything(), client.changes());
    for more in ["", "ONCE", "BLOCK 3", "ONCE BLOCK 3"] {
        let request = format!("RLOCK.ACQUIRE doc alice 1000 WRITE {more}");
        assert!(client.refused(&request), "{request}");
    }
    assert_eq!(client.everything(), before);
    assert_eq!(client.changes(), changes);
    assert_eq!(client.waiters("doc"), 0);
}

both_ways!(an_upgrade_waits_for_the_other_readers_ahead_of_all_waiters);
fn an_upgrade_waits_for_the_other_readers_ahead_of_all_waiters(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["alice", "bob", "carol"] {
        client.take_read("doc", owner);
    }
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "a");
    let mut plain = by.wait(&server, "doc", "p");
    let mut upgrade = by.write(&server, "doc", "bob");
    assert_eq!(client.waiters("doc"), 4);
    assert!(client.refused("RLOCK.ACQUIRE doc new 1000 READ"));
    // Those who are in come in again.
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    client.int("RLOCK.RELEASE doc carol READ");
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(client.waiters("doc"), 4);
    client.int("RLOCK.RELEASE doc alice READ");
    upgrade.token();
    let both = "bob:write=1 bob=2 mode=write";
    assert_eq!(client.hash("doc"), both);
    client.int("RLOCK.RELEASE doc bob READ ALL");
    client.int("RLOCK.RELEASE doc bob WRITE");
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();
    client.int("RLOCK.RELEASE doc a READ");
    plain.token();
    client.int("RLOCK.RELEASE doc p");
    client.nothing_left("doc");
}

both_ways!(a_second_upgrade_that_would_wait_is_a_deadlock);
fn a_second_upgrade_that_would_wait_is_a_deadlock(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["alice", "bob", "carol"] {
        client.take_read("doc", owner);
    }
    let mut upgrade = by.write(&server, "doc", "alice");
    let before = client.everything();
    for (owner, block) in [("bob", "0"), ("carol", "60000"), ("bob", "60000")] {
        let line = client.error(&format!(
            "RLOCK.ACQUIRE doc {owner} 1000 WRITE BLOCK {block}"
        ));
        assert!(line.starts_with("DEADLOCK "), "{line}");
    }
    // A try waits for nobody.
    assert!(client.refused("RLOCK.ACQUIRE doc bob 1000 WRITE"));
    assert_eq!(client.everything(), before);
    assert_eq!(client.waiters("doc"), 1);

    // Whoever was refused gives way, and all goes on.
    client.int("RLOCK.RELEASE doc bob READ");
    client.int("RLOCK.RELEASE doc carol READ");
    upgrade.token();
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
}

both_ways!(a_second_request_of_the_upgrading_owner_is_no_deadlock);
fn a_second_request_of_the_upgrading_owner_is_no_deadlock(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut upgrade = by.write(&server, "doc", "alice");
    let mut again = by.write(&server, "doc", "alice");
    assert_eq!(client.waiters("doc"), 2);
    client.int("RLOCK.RELEASE doc bob READ");
    let token = upgrade.token();
    assert_eq!(again.token(), token);
    let both = "alice:write=2 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
}

both_ways!(an_upgrade_is_granted_when_the_other_readers_leases_end);
fn an_upgrade_is_granted_when_the_other_readers_leases_end(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    let key = lease_key("doc", "bob", 1);
    let ends = client.succeed(&[
        "RLOCK.ACQUIRE doc bob 500 READ",
        &format!("PEXPIRETIME {key}"),
    ]);
    let mut upgrade = by.write(&server, "doc", "alice");
    upgrade.token();
    assert!(now_ms() >= int(ends[1].clone()), "not before");
    let both = "alice:write=1 alice=1 mode=write";
    assert_eq!(client.hash("doc"), both);
}

both_ways!(an_upgrade_keeps_its_place_when_its_own_read_lease_ends);
fn an_upgrade_keeps_its_place_when_its_own_read_lease_ends(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "bob");
    client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "r");
    let mut upgrade = by.write(&server, "doc", "alice");
    let key = lease_key("doc", "alice", 1);
    client.int("RLOCK.RENEW doc alice 100 READ");
    pass(now_ms() + 200);
    eventually("its lease is over", || {
        client.int(&format!("EXISTS {key}")) == 0
    });
    assert_eq!(client.held_by("doc"), "bob read 1");
    assert_eq!(client.waiters("doc"), 3);
    client.int("RLOCK.RELEASE doc bob READ");
    upgrade.token();
    // Its read hold ended with its lease.
    assert_eq!(client.hash("doc"), "alice:write=1 mode=write");
    client.int("RLOCK.RELEASE doc alice WRITE");
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();
}

both_ways!(an_upgrade_that_released_its_read_lock_still_waits);
fn an_upgrade_that_released_its_read_lock_still_waits(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut upgrade = by.write(&server, "doc", "alice");
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(client.held_by("doc"), "bob read 1");
    client.int("RLOCK.RELEASE doc bob READ");
    upgrade.token();
    assert_eq!(client.hash("doc"), "alice:write=1 mode=write");
    upgrade.client.in_step();
    assert_eq!(client.int("RLOCK.RELEASE doc alice WRITE"), 0);
    client.nothing_left("doc");
}
