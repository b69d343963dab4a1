//! Keys that become something else under their waiters, and keys that the server
//! takes to make room.

use redis::Value;

use crate::support::{both_ways, code, int, now_ms, Ask, Listener, RawClient, Server, Way};

#[track_caller]
fn waiting(by: Way, control: &mut RawClient) -> i64 {
    if by == Way::Queue {
        return control.counter("rlock_queued");
    }
    let info = control.text("INFO clients");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("blocked_clients:"));
    line.expect("a count").parse().expect("a count")
}

/// What makes `k` something that is no lock, and what frees the name again.
const WAYS: [(&[&str], &[&str]); 14] = [
    (&["SET k v"], &["DEL k"]),
    (&["SET k v"], &["GETDEL k"]),
    (&["SET k v"], &["UNLINK k"]),
    (&["SET k v"], &["FLUSHALL"]),
    (&["SET x v", "RENAME x k"], &["DEL k"]),
    (&["SET x v", "RENAME x k"], &["RENAME k x"]),
    (&["SET x v", "COPY x k REPLACE"], &["DEL k"]),
    (&["MULTI", "DEL k", "LPUSH k x", "EXEC"], &["LPOP k"]),
    (&["MULTI", "DEL k", "ZADD k 1 x", "EXEC"], &["ZREM k x"]),
    (&["MULTI", "DEL k", "ZADD k 1 x", "EXEC"], &["ZPOPMIN k"]),
    (&["MULTI", "DEL k", "XADD k 1-1 f v", "EXEC"], &["DEL k"]),
    (&["MULTI", "DEL k", "SADD k x", "EXEC"], &["SPOP k"]),
    (&["RPUSH x 1 2", "SORT x STORE k"], &["LTRIM k 1 0"]),
    (&["HSET k other 1"], &["HDEL k other a"]),
];

both_ways!(waiters_stay_behind_a_key_that_is_no_lock_until_it_is_gone);
fn waiters_stay_behind_a_key_that_is_no_lock_until_it_is_gone(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for (overwrite, free) in WAYS {
        println!("{overwrite:?} {free:?}");
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut first = by.wait(&server, "k", "b");
        let mut second = by.wait(&server, "k", "c");
        control.ask_all(overwrite);
        let refused = control.ask("RLOCK.ACQUIRE k d 1000 BLOCK 10");
        assert_eq!(code(&refused), "WRONGTYPE", "{overwrite:?}");
        let refused = control.ask("RLOCK.RELEASE k a");
        assert_eq!(code(&refused), "WRONGTYPE", "{overwrite:?}");
        assert_eq!(waiting(by, &mut control), 2, "{overwrite:?}");
        for reply in control.ask_all(free) {
            assert!(
                !matches!(reply, Value::ServerError(_)),
                "{free:?}: {reply:?}"
            );
        }
        first.token();
        assert_eq!(control.hash("k"), "b=1");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
        second.token();
        first.client.in_step();
        second.client.in_step();
    }
}

both_ways!(a_lock_restored_over_another_is_waited_for_until_its_lease_ends);
fn a_lock_restored_over_another_is_waited_for_until_its_lease_ends(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    control.ask("RLOCK.ACQUIRE other z 100000");
    let mut first = by.wait(&server, "k", "b");
    let mut second = by.wait(&server, "k", "c");
    let Value::BulkString(dump) = control.ask("DUMP other") else {
        panic!("no dump");
    };
    let restore: [&[u8]; 5] = [b"RESTORE", b"k", b"400", &dump, b"REPLACE"];
    // In one write: the lease is running.
    control.send(&restore);
    let replies = control.ask_all(&["HGET k z", "PEXPIRETIME k"]);
    assert_eq!(replies, [Value::Okay, Value::BulkString(b"1".to_vec())]);
    let ends = int(control.read());
    first.token();
    assert!(now_ms() >= ends, "granted before the deadline");
    // Restored for an owner that waits: it holds the lock, in another way.
    control.ask("FLUSHALL");
    second.token();
    control.ask("RLOCK.ACQUIRE other z 100000");
    let mut waits = by.wait(&server, "k", "z");
    control.ok(&restore);
    waits.token();
    let held = control.only("k");
    assert_eq!((held.owner.as_str(), held.holds), ("z", 2));
}

both_ways!(an_evicted_lock_is_announced_and_goes_to_the_next);
fn an_evicted_lock_is_announced_and_goes_to_the_next(by: Way) {
    for policy in ["volatile-ttl", "allkeys-random"] {
        let server = Server::start();
        let mut control = server.raw();
        control.ask(&format!("CONFIG SET maxmemory-policy {policy}"));
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut waiter = by.wait(&server, "k", "b");
        let mut events = Listener::keyspace(&server, 0);
        // The least there is: the next command has to make room.
        control.ask("CONFIG SET maxmemory 1");
        control.ask("PING");
        waiter.token();
        control.ask("CONFIG SET maxmemory 0");
        waiter.client.in_step();
        let told: Vec<_> = events
            .events()
            .into_iter()
            .filter(|(event, key)| key == "k" && event.starts_with("rlock."))
            .map(|(event, _)| event)
            .collect();
        assert_eq!(told[..2], ["rlock.evicted", "rlock.acquired"], "{policy}");
        let evicted = told
            .iter()
            .filter(|event| *event == "rlock.evicted")
            .count();
        assert!(told.len() - evicted == 1, "{told:?}");

        // All is well again.
        control.ask("FLUSHALL");
        control.token("RLOCK.ACQUIRE k c 100000");
        assert_eq!(control.int("RLOCK.RELEASE k c"), 0);
        server.alive();
    }
}
