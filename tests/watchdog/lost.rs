//! Connection open means lock held: a watchdog hold that ends in another way than
//! by its owner's release closes its connection, which is how the holder learns it.

use redis::Value;

use crate::support::{code, eventually, now_ms, pass, Ask, Bound, Server, Waiter};

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
        control.ask_all(&["FLUSHALL", "SELECT 1", "FLUSHDB", "SELECT 0"]);
        let mut held = Bound::new(&server, "k", "a");
        let mut other = Bound::with(&server, "elsewhere x 300");
        control.succeed(way);
        // Redis 7.0 notices an overwritten key up to 100 ms later.
        assert!(held.client.is_closed(), "{way:?}");
        let flushed = way[0].starts_with("FLUSH");
        if flushed {
            assert!(other.client.is_closed(), "{way:?}");
        } else {
            other.client.in_step();
        }
    }
    server.alive();
    control.goes_free("elsewhere");
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
}

#[test]
fn the_next_waiter_is_granted_and_the_former_holder_closed() {
    let server = Server::start();
    let mut control = server.raw();
    for way in ["RLOCK.FORCE k", "DEL k", "UNLINK k", "FLUSHALL", "FLUSHDB"] {
        let mut held = Bound::new(&server, "k", "a");
        let mut next = Waiter::with(&server, "k b 100000 BLOCK 0 WATCHDOG");
        control.ask(way);
        assert!(next.token() > held.token, "{way}");
        assert!(held.client.is_closed(), "{way}");
        // The close of the former holder touches nothing of the new one's.
        let hold = control.only("k");
        assert_eq!((hold.owner.as_str(), hold.watchdog), ("b", Some(next.id)));
        next.client.in_step();
        assert_eq!(next.client.int("RLOCK.RELEASE k b"), 0, "{way}");
    }
}

/// Redis 7.4 and Valkey 9 let fields run out.
#[test]
fn the_next_waiter_is_granted_when_the_field_of_the_lock_has_run_out() {
    let server = Server::start();
    let mut control = server.raw();
    for options in ["", "WATCHDOG"] {
        let mut holder = server.raw();
        holder.token(&format!("RLOCK.ACQUIRE k a 100000 {options}"));
        let mut next = Waiter::new(&server, "k", "b");
        let expire = control.ask("HPEXPIRE k 1 FIELDS 1 a");
        if matches!(expire, Value::ServerError(_)) {
            return;
        }
        next.token();
        assert_eq!(control.held_by("k"), "b exclusive 1");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    }
}

#[test]
fn all_that_is_left_of_a_closed_connection_ends_as_at_any_close() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::new(&server, "k", "a");
    held.client.ask("RLOCK.ACQUIRE other a 100000 WATCHDOG");
    held.client.ask("RLOCK.ACQUIRE plain a 100000");
    assert_eq!(control.int("DEL k"), 1);
    assert!(held.client.is_closed());
    control.goes_free("other");
    assert_eq!(control.held_by("plain"), "a exclusive 1");
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
        held.client.ask_all(requests);
        next.token();
        assert!(other.client.is_closed(), "{requests:?}");
        pass(now_ms() + 600);
        held.client.in_step();
        assert_eq!(control.hash("k"), "b=1");
        held.client.close();
        // Nor does its close end what is not its own any more.
        pass(now_ms() + 300);
        assert_eq!(control.hash("k"), "b=1");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    }
}

#[test]
fn who_releases_stays_connected_and_so_does_whom_it_releases() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
    pass(now_ms() + 600);
    held.client.in_step();
    // By its owner on another connection, once and all at once.
    for all in ["", "ALL"] {
        let mut held = Bound::with(&server, "k a 300");
        assert_eq!(control.int(&format!("RLOCK.RELEASE k a {all}")), 0);
        pass(now_ms() + 600);
        held.client.in_step();
    }
}

#[test]
fn a_renamed_lock_stays_its_owners_and_is_bound_to_nobody() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 100000");
    let ends = control.ends("k");
    let mut old = Waiter::new(&server, "k", "b");
    control.ok("RENAME k moved");
    old.token();
    assert!(held.client.is_closed());
    // Time enough for a release that should not be.
    pass(now_ms() + 300);
    let moved = control.only("moved");
    assert_eq!((moved.owner.as_str(), moved.watchdog), ("a", None));
    assert_eq!(moved.token, Some(held.token));
    assert_eq!(control.ends("moved"), ends);
    assert!(control.refused("RLOCK.ACQUIRE moved z 1000"));
}

#[test]
fn after_a_swap_of_databases_open_still_means_held() {
    let server = Server::start();
    let (mut zero, mut one) = (server.raw(), server.raw());
    one.ask("SELECT 1");
    let mut held = Bound::with(&server, "k a 1000");
    zero.ok("SWAPDB 0 1");
    assert_eq!(zero.mode("k"), "free");
    // Either it was told, or it holds on in the database that its lock is in now.
    if held.client.is_closed_within(500) {
        return;
    }
    pass(now_ms() + 3000);
    held.client.in_step();
    assert_eq!(one.only("k").watchdog, Some(held.id));
    held.client.close();
    one.goes_free("k");
}

#[test]
fn a_connection_whose_lock_is_evicted_is_closed() {
    for policy in ["volatile-ttl", "allkeys-random", "allkeys-lru"] {
        let server = Server::start();
        let mut control = server.raw();
        control.ok(&format!("CONFIG SET maxmemory-policy {policy}"));
        let mut held = Bound::new(&server, "k", "a");
        // The least there is: the next command has to make room.
        control.ok("CONFIG SET maxmemory 1");
        control.ask("PING");
        assert!(held.client.is_closed(), "{policy}");
        control.ok("CONFIG SET maxmemory 0");
        assert_eq!(control.int("EXISTS k"), 0, "{policy}");
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
        plain.ask("RLOCK.ACQUIRE plain p 100000 ");
        // A master that nobody reaches: the data set stays as it is.
        control.ok("REPLICAOF 127.0.0.1 1");
        assert!(held.client.is_closed());
        plain.in_step();
        // Nothing may be written there, so the lock stands as it stood.
        assert_eq!(control.hash("k"), "a=1");
        assert_eq!(control.code("RLOCK.RELEASE k a"), "READONLY");
        control.ok("REPLICAOF NO ONE");
        assert_eq!(control.hash("k"), "a=1");
        assert_eq!(control.only("k").watchdog, None);
        control.ask("FLUSHALL");
        plain.in_step();
    }
    server.alive();
    assert!(!server.log().contains("ASSERTION FAILED"));
}

#[test]
fn keep_leaves_the_connection_open_whatever_becomes_of_the_lock() {
    let server = Server::start_with(&["--rlock.watchdog-lost", "keep"]);
    let mut control = server.raw();
    for way in WAYS {
        control.ask_all(&["FLUSHALL", "SELECT 1", "FLUSHDB", "SELECT 0"]);
        let mut held = Bound::with(&server, "k a 300");
        control.ask_all(way);
        eventually("it is noticed", || {
            control.counter("rlock_watchdog_holds") == 0
        });
        pass(now_ms() + 150);
        held.client.in_step();
        // Not renewed either, nor written anew.
        let still = control.ask("HGET k a");
        assert!(!matches!(still, Value::BulkString(_)), "{way:?}: {still:?}");
        assert_eq!(held.client.code("RLOCK.RENEW elsewhere a 9"), "NOTHELD");
    }
}

#[test]
fn the_setting_can_be_changed_while_locks_are_held() {
    let server = Server::start();
    let mut control = server.raw();
    let found = control.texts("CONFIG GET rlock.watchdog-lost");
    assert_eq!(found, ["rlock.watchdog-lost", "close"]);
    let mut stays = Bound::new(&server, "k", "a");
    control.ok("CONFIG SET rlock.watchdog-lost keep");
    control.ask("DEL k");
    let mut goes = Bound::new(&server, "k", "a");
    control.ok("CONFIG SET rlock.watchdog-lost close");
    control.ask("DEL k");
    assert!(goes.client.is_closed());
    stays.client.in_step();
    let bad = control.ask("CONFIG SET rlock.watchdog-lost maybe");
    assert_eq!(code(&bad), "ERR");
}

#[test]
fn who_forces_its_own_lock_by_a_script_is_closed() {
    // Which connection called it a script does not know.
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::new(&server, "k", "a");
    held.client
        .send("EVAL redis.call('RLOCK.FORCE',KEYS[1]) 1 k");
    assert!(held.client.is_closed());
    control.goes_free("k");
}
