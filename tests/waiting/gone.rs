//! However a lock's key goes, its first waiter is granted at once. The leases here
//! are so long that only noticing can have done it.

use redis::Value;

use crate::support::{
    both_ways, ends_from, eventually, int, now_ms, pass, pong, Ask, Listener, RawClient, Server,
    Way, LONG,
};

/// The requests that make `k` go, in one write each, with the replies dropped.
const WAYS: [&[&str]; 28] = [
    &["RLOCK.RELEASE k a"],
    &["RLOCK.FORCE k"],
    &["DEL k"],
    &["UNLINK k"],
    &["FLUSHDB"],
    &["FLUSHDB ASYNC"],
    &["FLUSHALL"],
    &["FLUSHALL ASYNC"],
    &["RENAME k gone"],
    &["MOVE k 1"],
    &["SWAPDB 0 1"],
    &["SWAPDB 1 0"],
    &["SWAPDB 0 1", "SWAPDB 2 3"],
    &["SWAPDB 0 2", "SWAPDB 1 2"],
    &["SWAPDB 0 1", "SWAPDB 2 2"],
    &["PEXPIRE k 0"],
    &["PEXPIRE k 1"],
    &["EXPIREAT k 1"],
    &["HDEL k a"],
    &["MULTI", "DEL k", "EXEC"],
    &["MULTI", "HDEL k a", "SET other 1", "EXEC"],
    &["EVAL redis.call('DEL',KEYS[1]) 1 k"],
    &["EVAL redis.call('HDEL',KEYS[1],ARGV[1]) 1 k a"],
    &["SORT nothing STORE k"],
    &["SUNIONSTORE k nothing"],
    &["SET k v", "GETDEL k"],
    &["SET k v PX 1"],
    &["MULTI", "DEL k", "LPUSH k x", "LPOP k", "EXEC"],
];

both_ways!(a_waiter_is_granted_when_the_key_goes_in_whatever_way);
fn a_waiter_is_granted_when_the_key_goes_in_whatever_way(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for way in WAYS {
        println!("{way:?}");
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut first = by.wait(&server, "k", "b");
        let mut second = by.wait(&server, "k", "c");
        let start = now_ms();
        for reply in control.ask_all(way) {
            assert!(
                !matches!(reply, Value::ServerError(_)),
                "{way:?}: {reply:?}"
            );
        }
        first.token();
        let ends = control.ends("k");
        assert!(ends_from(start, LONG).contains(&ends), "{way:?}");
        assert_eq!(control.hash("k"), "b=1", "{way:?}");
        assert_eq!(control.waiters("k"), 1, "{way:?}");
        // The queue is whole: the lock goes on as ever.
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0, "{way:?}");
        second.token();
        assert_eq!(control.int("RLOCK.RELEASE k c"), 0, "{way:?}");
        control.is_free("k");
        first.client.in_step();
        second.client.in_step();
    }
    server.alive();
}

both_ways!(a_waiter_is_granted_when_the_key_is_migrated_away);
fn a_waiter_is_granted_when_the_key_is_migrated_away(by: Way) {
    let server = Server::start();
    let target = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut waiter = by.wait(&server, "k", "b");
    let migrate = format!("MIGRATE 127.0.0.1 {} k 0 5000", target.port());
    control.ok(&migrate);
    waiter.token();
    assert_eq!(control.hash("k"), "b=1");
    assert_eq!(target.raw().hash("k"), "a=1");
}

both_ways!(a_waiter_in_every_database_is_granted_when_all_are_flushed);
fn a_waiter_in_every_database_is_granted_when_all_are_flushed(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let mut waiters = Vec::new();
    for db in 0..4 {
        control.ask(&format!("SELECT {db}"));
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut client = server.raw();
        client.ask(&format!("SELECT {db}"));
        waiters.push(by.on(client, "RLOCK.ACQUIRE k b 100000 BLOCK 0"));
    }
    // One database, from another one.
    control.ask_all(&["SELECT 2", "FLUSHDB", "SELECT 0"]);
    waiters.remove(2).token();
    assert_eq!(control.waiters("k"), 1);
    assert_eq!(control.hash("k"), "a=1");
    control.ask("FLUSHALL");
    for mut waiter in waiters {
        waiter.token();
    }
    for db in [0, 1, 3] {
        control.ask(&format!("SELECT {db}"));
        assert_eq!(control.hash("k"), "b=1", "{db}");
    }
}

both_ways!(swapdb_brings_each_queue_before_the_lock_that_came);
fn swapdb_brings_each_queue_before_the_lock_that_came(by: Way) {
    let server = Server::start();
    let (mut zero, mut one) = (server.raw(), server.raw());
    one.ask("SELECT 1");
    let here = zero.token("RLOCK.ACQUIRE k a 100000");
    let there = one.token("RLOCK.ACQUIRE k z 100000");
    let mut waits_here = by.wait(&server, "k", "b");
    let mut client = server.raw();
    client.ask("SELECT 1");
    let mut waits_there = by.on(client, "RLOCK.ACQUIRE k c 100000 BLOCK 0");

    zero.ask("SWAPDB 0 1");
    // The holds have changed places, tokens and all; the queues have not.
    assert_eq!(zero.int("RLOCK.ACQUIRE k z 1000"), there);
    assert_eq!(one.int("RLOCK.ACQUIRE k a 1000"), here);
    assert_eq!((zero.waiters("k"), one.waiters("k")), (1, 1));
    assert_eq!(zero.int("RLOCK.RELEASE k z ALL"), 0);
    waits_here.token();
    assert_eq!(one.int("RLOCK.RELEASE k a ALL"), 0);
    waits_there.token();
    assert_eq!(zero.hash("k"), "b=1");
    assert_eq!(one.hash("k"), "c=1");
}

both_ways!(a_renamed_lock_stays_its_holders_with_token_and_deadline);
fn a_renamed_lock_stays_its_holders_with_token_and_deadline(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let moves: [(&str, u32); 3] = [
        ("RENAME k moved", 0),
        ("RENAMENX k moved", 0),
        ("MOVE k 1", 1),
    ];
    for (command, db) in moves {
        control.ask_all(&["FLUSHALL", "SELECT 0"]);
        let ends = control.take_until("k", 2000);
        let granted = control.info("k").holders[0].token.expect("a token");
        let mut old = by.wait(&server, "k", "b");
        let mut elsewhere = Listener::keyspace(&server, 1);
        control.ask(command);
        old.token();
        let name = if db == 0 { "moved" } else { "k" };
        control.ask(&format!("SELECT {db}"));
        assert_eq!(control.ends(name), ends, "{command}");
        assert_eq!(
            control.int(&format!("RLOCK.ACQUIRE {name} a 1")),
            granted,
            "{command}"
        );
        assert!(
            control.refused(&format!("RLOCK.ACQUIRE {name} c 1")),
            "{command}"
        );
        let mut client = server.raw();
        client.ask(&format!("SELECT {db}"));
        let mut new = by.on(client, &format!("RLOCK.ACQUIRE {name} c 100000 BLOCK 0"));
        new.token();
        assert!(now_ms() >= ends, "{command}");
        let events = if db == 0 { &mut events } else { &mut elsewhere };
        let expired = |events: Vec<(String, String)>| {
            let told = ("rlock.expired".to_owned(), name.to_owned());
            events.into_iter().filter(|event| *event == told).count()
        };
        assert_eq!(expired(events.events()), 1, "{command}");
    }
}

both_ways!(a_lock_renamed_to_a_name_with_a_queue_is_what_that_queue_waits_for);
fn a_lock_renamed_to_a_name_with_a_queue_is_what_that_queue_waits_for(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for replace in ["RENAME other k", "COPY other k REPLACE"] {
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        control.ask("RLOCK.ACQUIRE other z 100000");
        let mut waiter = by.wait(&server, "k", "b");
        control.ask(replace);
        assert_eq!(control.hash("k"), "z=1");
        assert_eq!(control.waiters("k"), 1);
        assert!(control.refused("RLOCK.ACQUIRE k c 1"));
        assert_eq!(control.int("RLOCK.RELEASE k z"), 0);
        waiter.token();
    }
}

fn wait_until_granted_by(by: Way, control: &mut RawClient, server: &Server, requests: &[&str]) {
    let ms = 300;
    control.ask("FLUSHALL");
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut waiter = by.wait(server, "k", "b");
    let start = now_ms();
    // In one write: the lease is running.
    let replies = control.ask_all(&[requests, &["PEXPIRETIME k"]].concat());
    let ends = int(replies.last().expect("a deadline").clone());
    assert!(ends_from(start, ms).contains(&ends), "{requests:?}");
    waiter.token();
    let at = now_ms();
    assert!(
        at >= ends,
        "{requests:?}: granted {} ms too early",
        ends - at
    );
    assert!(now_ms() < ends + 5000, "{requests:?}");
    assert_eq!(control.hash("k"), "b=1");
}

both_ways!(a_shorter_lease_by_hand_ends_when_it_says);
fn a_shorter_lease_by_hand_ends_when_it_says(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for requests in [
        &["PEXPIRE k 300"][..],
        &["MULTI", "PEXPIRE k 300", "EXEC"],
        &["EVAL redis.call('PEXPIRE',KEYS[1],300) 1 k"],
        &["SET k v PX 300"],
        &["SET k v", "PEXPIRE k 300"],
        &["RLOCK.RENEW k a 300"],
    ] {
        wait_until_granted_by(by, &mut control, &server, requests);
    }
}

both_ways!(a_longer_lease_by_hand_ends_later);
fn a_longer_lease_by_hand_ends_later(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for longer in ["PEXPIRE k 100000", "PERSIST k"] {
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut waiter = by.wait(&server, "k", "b");
        let replies = control.ask_all(&["PEXPIRE k 300", "PEXPIRETIME k", longer]);
        let ends = int(replies[1].clone());
        assert_eq!(replies[2], Value::Int(1));
        pass(ends + 200);
        assert_eq!(control.hash("k"), "a=1", "{longer}");
        assert_eq!(control.waiters("k"), 1, "{longer}");
        // Still whole: RENEW gives it a lease again, whose end is noticed.
        let replies = control.ask_all(&["RLOCK.RENEW k a 200", "PEXPIRETIME k"]);
        assert_eq!(replies[0], Value::Int(1));
        let ends = int(replies[1].clone());
        waiter.token();
        assert!(now_ms() >= ends, "{longer}");
    }
}

both_ways!(a_reload_keeps_locks_queues_and_deadlines);
fn a_reload_keeps_locks_queues_and_deadlines(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let granted = control.token("RLOCK.ACQUIRE k a 100000");
    let ends = control.take_until("soon", 700);
    let mut long = by.wait(&server, "k", "b");
    let mut soon = by.wait(&server, "soon", "b");
    control.ok("DEBUG RELOAD");
    assert_eq!(control.waiters("k"), 1);
    assert_eq!(control.int("RLOCK.ACQUIRE k a 1"), granted);
    soon.token();
    assert!(now_ms() >= ends);
    assert_eq!(control.int("DEL k"), 1);
    long.token();
    eventually("the server is well", || control.ask("PING") == pong());
    control.has_waiters("k", 0);
}

both_ways!(a_reload_of_an_older_state_brings_each_queue_before_what_is_there_now);
fn a_reload_of_an_older_state_brings_each_queue_before_what_is_there_now(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    // What is loaded: nobody holds `gone`, z holds `other`.
    let there = control.token("RLOCK.ACQUIRE other z 100000");
    control.ok("SAVE");
    control.ask("RLOCK.RELEASE other z");
    for key in ["gone", "other"] {
        control.token(&format!("RLOCK.ACQUIRE {key} a 100000"));
    }
    let mut gone = by.wait(&server, "gone", "b");
    let mut other = by.wait(&server, "other", "b");
    control.ok("DEBUG RELOAD NOSAVE");
    gone.token();
    assert_eq!(control.hash("gone"), "b=1");
    assert_eq!(control.hash("other"), "z=1");
    assert_eq!(control.waiters("other"), 1);
    assert_eq!(control.code("RLOCK.RELEASE other a"), "NOTHELD");
    assert_eq!(control.int("RLOCK.RELEASE other z"), 0);
    assert!(other.token() > there);
}
