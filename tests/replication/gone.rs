//! A grant that follows from a key that went reaches the replica after the command
//! that took the key, not before: the replica has the new hold.

use redis::Value;

use crate::support::{Ask, RawClient, Server, Waiter};

/// Waits until the replica has all that the master wrote so far.
#[track_caller]
fn synced(control: &mut RawClient) {
    control.ask("SELECT 9");
    control.ask("SET mark 1");
    assert_eq!(control.int("WAIT 1 10000"), 1);
    control.ask("SELECT 0");
}

#[test]
fn the_replica_has_the_grant_and_not_the_loss() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let replica = Server::start_replica_of(&server);
    let mut control = server.raw();
    let mut copy = replica.raw();
    let ways: [&[&str]; 14] = [
        &["RLOCK.RELEASE k a"],
        &["DEL k"],
        &["UNLINK k"],
        &["FLUSHDB"],
        &["FLUSHALL"],
        &["FLUSHALL ASYNC"],
        &["RENAME k gone"],
        &["MOVE k 1"],
        &["SWAPDB 0 1"],
        &["PEXPIRE k 30"],
        &["PEXPIREAT k 1"],
        &["HDEL k a"],
        &["MULTI", "DEL k", "SET other 1", "EXEC"],
        &["EVAL redis.call('DEL',KEYS[1]);redis.call('SET',KEYS[2],1) 2 k l"],
    ];
    for way in ways {
        for _ in 0..10 {
            control.ask("FLUSHALL");
            control.ask("RLOCK.ACQUIRE k a 100000");
            let mut waiter = Waiter::new(&server, "k", "b");
            control.ask_all(way);
            waiter.token();
            let ends = control.ends("k");
            synced(&mut control);
            assert_eq!(control.hash("k"), "b=1", "{way:?}");
            assert_eq!(copy.hash("k"), "b=1", "{way:?}");
            assert_eq!(copy.ends("k"), ends, "{way:?}");
        }
    }

    // What was written to disk says the same.
    drop((control, copy));
    let mut server = server;
    server.restart();
    assert_eq!(server.raw().hash("k"), "b=1");
    replica.alive();
}

#[test]
fn what_follows_a_move_goes_to_the_database_it_is_meant_for() {
    let server = Server::start();
    let replica = Server::start_replica_of(&server);
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    control.ask("SET stranger 1");
    for key in ["stranger", "k"] {
        assert_eq!(control.int(&format!("MOVE {key} 3")), 1);
        assert_eq!(control.int("INCR follows"), 1, "{key}");
        synced(&mut control);
        let there = replica.raw().ask("GET follows");
        assert_eq!(there, Value::BulkString(b"1".into()), "{key}");
        assert_eq!(control.int("DEL follows"), 1, "{key}");
    }
}

#[test]
fn an_expiry_that_a_reader_causes_leaves_the_grant_on_the_replica() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let replica = Server::start_replica_of(&server);
    let mut control = server.raw();
    let mut copy = replica.raw();
    for reader in [
        "GET k",
        "SCAN 0",
        "KEYS *",
        "RANDOMKEY",
        "EXISTS k",
        "TYPE k",
    ] {
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 20");
        let mut waiter = Waiter::new(&server, "k", "b");
        let mut spinning = server.raw();
        while waiter.client.heard().is_none() {
            spinning.ask_all(&[reader; 20]);
        }
        synced(&mut control);
        assert_eq!(control.hash("k"), "b=1", "{reader}");
        assert_eq!(copy.hash("k"), "b=1", "{reader}");
        assert!(copy.ends("k") > 0, "{reader}");
        waiter.client.in_step();
    }
    server.alive();
    replica.alive();
}
