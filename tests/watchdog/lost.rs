//! Connection open means lock held: a watchdog hold that ends in another way than
//! by its owner's release closes its connection, which is how the holder learns it.

use redis::Value;

use crate::support::locks::{code, deadline, holder, now_ms, pass, Say, Waiter};
use crate::support::look::{counter, goes_free, held_by, mode, only, open, set, Bound};
use crate::support::{eventually, Server};

/// Requests of somebody else by which `k` is lost.
const WAYS: [&[&str]; 17] = [
    &["RLOCK.FORCE k"],
    &["DEL k"],
    &["UNLINK k"],
    &["FLUSHALL"],
    &["FLUSHALL ASYNC"],
    &["FLUSHDB"],
    &["SET k v"],
    &["RENAME k gone"],
    &["RENAMENX k gone"],
    &["MOVE k 1"],
    &["HDEL k a"],
    &["SUNIONSTORE k nothing"],
    &["EVAL redis.call('DEL',KEYS[1]) 1 k"],
    &["MULTI", "DEL k", "SET other v", "EXEC"],
    &["MULTI", "DEL k", "HSET k z 1", "PEXPIRE k 100000", "EXEC"],
    &["SET x v", "RENAME x k"],
    &[
        "HSET other z 1",
        "PEXPIRE other 100000",
        "COPY other k REPLACE",
    ],
];

#[test]
fn a_connection_whose_lock_is_lost_is_closed() {
    let server = Server::start();
    let mut control = server.raw();
    for way in WAYS {
        println!("{way:?}");
        control.say_all(&["FLUSHALL", "SELECT 1", "FLUSHDB", "SELECT 0"]);
        let mut held = Bound::new(&server, "k", "a");
        let mut other = Bound::with(&server, "elsewhere x 300");
        for reply in control.say_all(way) {
            assert!(
                !matches!(reply, Value::ServerError(_)),
                "{way:?}: {reply:?}"
            );
        }
        // Redis 7.0 notices an overwritten key up to 100 ms later.
        assert!(held.is_closed(), "{way:?}");
        let flushed = way[0].starts_with("FLUSH");
        if flushed {
            assert!(other.is_closed(), "{way:?}");
        } else {
            other.is_open();
        }
    }
    server.alive();
    goes_free(&mut control, "elsewhere");
    assert_eq!(counter(&mut control, "rlock_watchdog_holds"), 0);
}

#[test]
fn the_next_waiter_is_granted_and_the_former_holder_closed() {
    let server = Server::start();
    let mut control = server.raw();
    for way in ["RLOCK.FORCE k", "DEL k", "UNLINK k", "FLUSHALL", "FLUSHDB"] {
        let mut held = Bound::new(&server, "k", "a");
        let mut next = Waiter::with(&server, "k b 100000 BLOCK 0 WATCHDOG");
        control.say(way);
        assert!(next.token() > held.token, "{way}");
        assert!(held.is_closed(), "{way}");
        // The close of the former holder touches nothing of the new one's.
        let hold = only(&mut control, "k");
        assert_eq!((hold.owner.as_str(), hold.watchdog), ("b", Some(next.id)));
        next.in_step();
        assert_eq!(next.client.say("RLOCK.RELEASE k b"), Value::Int(0), "{way}");
    }
}

#[test]
fn all_that_is_left_of_a_closed_connection_ends_as_at_any_close() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::new(&server, "k", "a");
    held.client.say("RLOCK.ACQUIRE other a 100000 WATCHDOG");
    held.client.say("RLOCK.ACQUIRE plain a 100000");
    assert_eq!(control.say("DEL k"), Value::Int(1));
    assert!(held.is_closed());
    goes_free(&mut control, "other");
    assert_eq!(held_by(&mut control, "plain"), "a exclusive 1");
}

#[test]
fn who_forces_its_own_lock_stays_connected() {
    let server = Server::start();
    let mut control = server.raw();
    for requests in [&["RLOCK.FORCE k"][..], &["MULTI", "RLOCK.FORCE k", "EXEC"]] {
        let mut held = Bound::with(&server, "k a 300");
        // The same owner by another connection: that one does not know.
        let mut other = Bound::with(&server, "k a 300");
        let mut next = Waiter::new(&server, "k", "b");
        held.client.say_all(requests);
        next.token();
        assert!(other.is_closed(), "{requests:?}");
        pass(now_ms() + 600);
        held.is_open();
        assert_eq!(holder(&mut control, "k").as_deref(), Some("b"));
        held.client.close();
        // Nor does its close end what is not its own any more.
        pass(now_ms() + 300);
        assert_eq!(holder(&mut control, "k").as_deref(), Some("b"));
        assert_eq!(control.say("RLOCK.RELEASE k b"), Value::Int(0));
    }
}

#[test]
fn who_releases_stays_connected_and_so_does_whom_it_releases() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    assert_eq!(held.client.say("RLOCK.RELEASE k a"), Value::Int(0));
    pass(now_ms() + 600);
    held.is_open();
    // By its owner on another connection, once and all at once.
    for all in ["", "ALL"] {
        let mut held = Bound::with(&server, "k a 300");
        let released = control.say(&format!("RLOCK.RELEASE k a {all}"));
        assert_eq!(released, Value::Int(0));
        pass(now_ms() + 600);
        held.is_open();
    }
}

#[test]
fn a_renamed_lock_stays_its_owners_and_is_bound_to_nobody() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 100000");
    let ends = deadline(&mut control, "k");
    let mut old = Waiter::new(&server, "k", "b");
    assert_eq!(control.say("RENAME k moved"), Value::Okay);
    old.token();
    assert!(held.is_closed());
    // Time enough for a release that should not be.
    pass(now_ms() + 300);
    let moved = only(&mut control, "moved");
    assert_eq!((moved.owner.as_str(), moved.watchdog), ("a", None));
    assert_eq!(moved.token, Some(held.token));
    assert_eq!(deadline(&mut control, "moved"), ends);
    assert_eq!(control.say("RLOCK.ACQUIRE moved z 1000"), Value::Nil);
}

#[test]
fn after_a_swap_of_databases_open_still_means_held() {
    let server = Server::start();
    let (mut zero, mut one) = (server.raw(), server.raw());
    one.say("SELECT 1");
    let mut held = Bound::with(&server, "k a 1000");
    assert_eq!(zero.say("SWAPDB 0 1"), Value::Okay);
    assert_eq!(mode(&mut zero, "k"), "free");
    // Either it was told, or it holds on in the database that its lock is in now.
    if held.client.is_closed_within(500) {
        return;
    }
    pass(now_ms() + 3000);
    held.is_open();
    assert_eq!(only(&mut one, "k").watchdog, Some(held.id));
    held.client.close();
    goes_free(&mut one, "k");
}

#[test]
fn a_connection_whose_lock_is_evicted_is_closed() {
    for policy in ["volatile-ttl", "allkeys-random", "allkeys-lru"] {
        let server = Server::start();
        let mut control = server.raw();
        set(&mut control, &format!("maxmemory-policy {policy}"));
        let mut held = Bound::new(&server, "k", "a");
        // The least there is: the next command has to make room.
        set(&mut control, "maxmemory 1");
        control.say("PING");
        assert!(held.is_closed(), "{policy}");
        set(&mut control, "maxmemory 0");
        assert_eq!(control.say("EXISTS k"), Value::Int(0), "{policy}");
        server.alive();
    }
}

#[test]
fn a_connection_whose_server_turns_replica_is_closed() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for _ in 0..3 {
        let mut held = Bound::with(&server, "k a 100000");
        let mut plain = server.raw();
        plain.say("RLOCK.ACQUIRE plain p 100000 ");
        // A master that nobody reaches: the data set stays as it is.
        assert_eq!(control.say("REPLICAOF 127.0.0.1 1"), Value::Okay);
        assert!(held.is_closed());
        open(&mut plain);
        // Nothing may be written there, so the lock stands as it stood.
        assert_eq!(holder(&mut control, "k").as_deref(), Some("a"));
        assert_eq!(code(&control.say("RLOCK.RELEASE k a")), "READONLY");
        assert_eq!(control.say("REPLICAOF NO ONE"), Value::Okay);
        assert_eq!(holder(&mut control, "k").as_deref(), Some("a"));
        assert_eq!(only(&mut control, "k").watchdog, None);
        control.say("FLUSHALL");
        open(&mut plain);
    }
    server.alive();
    assert!(!server.log().contains("ASSERTION FAILED"));
}

#[test]
fn keep_leaves_the_connection_open_whatever_becomes_of_the_lock() {
    let server = Server::start_with(&["--rlock.watchdog-lost", "keep"]);
    let mut control = server.raw();
    for way in WAYS {
        control.say_all(&["FLUSHALL", "SELECT 1", "FLUSHDB", "SELECT 0"]);
        let mut held = Bound::with(&server, "k a 300");
        control.say_all(way);
        eventually("it is noticed", || {
            counter(&mut control, "rlock_watchdog_holds") == 0
        });
        pass(now_ms() + 150);
        held.is_open();
        // Not renewed either, nor written anew.
        let still = control.say("HGET k a");
        assert!(!matches!(still, Value::BulkString(_)), "{way:?}: {still:?}");
        assert_eq!(
            code(&held.client.say("RLOCK.RENEW elsewhere a 9")),
            "NOTHELD"
        );
    }
}

#[test]
fn the_setting_can_be_changed_while_locks_are_held() {
    let server = Server::start();
    let mut control = server.raw();
    let found = control.say("CONFIG GET rlock.watchdog-lost");
    let found: Vec<String> = redis::from_redis_value(found).expect("a pair");
    assert_eq!(found, ["rlock.watchdog-lost", "close"]);
    let mut stays = Bound::new(&server, "k", "a");
    set(&mut control, "rlock.watchdog-lost keep");
    control.say("DEL k");
    let mut goes = Bound::new(&server, "k", "a");
    set(&mut control, "rlock.watchdog-lost close");
    control.say("DEL k");
    assert!(goes.is_closed());
    stays.is_open();
    let bad = control.say("CONFIG SET rlock.watchdog-lost maybe");
    assert_eq!(code(&bad), "ERR");
}

#[test]
fn who_forces_its_own_lock_by_a_script_is_closed() {
    // Which connection called it a script does not know.
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::new(&server, "k", "a");
    held.client
        .tell("EVAL redis.call('RLOCK.FORCE',KEYS[1]) 1 k");
    assert!(held.is_closed());
    goes_free(&mut control, "k");
}
