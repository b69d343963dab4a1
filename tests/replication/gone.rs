//! A grant that follows from a key that went reaches the replica after the command
//! that took the key, not before: the replica has the new hold.

use redis::Value;

use crate::support::locks::{deadline, holder, Say, Waiter};
use crate::support::{RawClient, Server};

/// Waits until the replica has all that the master wrote so far.
#[track_caller]
fn synced(control: &mut RawClient) {
    control.say("SELECT 9");
    control.say("SET mark 1");
    assert_eq!(control.say("WAIT 1 10000"), Value::Int(1));
    control.say("SELECT 0");
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
            control.say("FLUSHALL");
            control.say("RLOCK.ACQUIRE k a 100000");
            let mut waiter = Waiter::new(&server, "k", "b");
            control.say_all(way);
            waiter.token();
            let ends = deadline(&mut control, "k");
            synced(&mut control);
            assert_eq!(holder(&mut control, "k").as_deref(), Some("b"), "{way:?}");
            assert_eq!(holder(&mut copy, "k").as_deref(), Some("b"), "{way:?}");
            assert_eq!(deadline(&mut copy, "k"), ends, "{way:?}");
        }
    }

    // What was written to disk says the same.
    drop((control, copy));
    let mut server = server;
    server.restart();
    assert_eq!(holder(&mut server.raw(), "k").as_deref(), Some("b"));
    replica.alive();
}

#[test]
fn what_follows_a_move_goes_to_the_database_it_is_meant_for() {
    let server = Server::start();
    let replica = Server::start_replica_of(&server);
    let mut control = server.raw();
    control.say("RLOCK.ACQUIRE k a 100000");
    control.say("SET stranger 1");
    for key in ["stranger", "k"] {
        assert_eq!(control.say(&format!("MOVE {key} 3")), Value::Int(1));
        assert_eq!(control.say("INCR follows"), Value::Int(1), "{key}");
        synced(&mut control);
        let there = replica.raw().say("GET follows");
        assert_eq!(there, Value::BulkString(b"1".into()), "{key}");
        assert_eq!(control.say("DEL follows"), Value::Int(1), "{key}");
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
        control.say("FLUSHALL");
        control.say("RLOCK.ACQUIRE k a 20");
        let mut waiter = Waiter::new(&server, "k", "b");
        let mut spinning = server.raw();
        while waiter
            .client
            .read_within(std::time::Duration::from_millis(1))
            .is_none()
        {
            spinning.say_all(&[reader; 20]);
        }
        synced(&mut control);
        assert_eq!(holder(&mut control, "k").as_deref(), Some("b"), "{reader}");
        assert_eq!(holder(&mut copy, "k").as_deref(), Some("b"), "{reader}");
        assert!(deadline(&mut copy, "k") > 0, "{reader}");
        waiter.in_step();
    }
    server.alive();
    replica.alive();
}
