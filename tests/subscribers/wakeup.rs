//! Who hears of a lock that changed: Redisson's waiters, by the message on the
//! lock's channel, and clients that WATCH the key.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Value;

use crate::support::{bulk, eventually, Ask, Listener, Server, Waiter};

const CHANNEL: &str = "redisson_lock__channel:";

fn message(name: &str) -> (String, String) {
    (format!("{CHANNEL}{name}"), "0".to_owned())
}

#[test]
fn a_lock_that_is_left_free_is_announced_on_its_channel() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.refused("RLOCK.ACQUIRE job bob 60000");
    client.int("RLOCK.RENEW job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(heard.messages(), []);
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(heard.messages(), [message("{job}")]);

    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.FORCE job");
    assert_eq!(heard.messages(), [message("{job}")]);
    client.int("RLOCK.FORCE job");
    assert_eq!(heard.messages(), []);

    client.int("RLOCK.ACQUIRE job alice 30");
    assert_eq!(heard.until(&message("{job}")), [message("{job}")]);
    assert_eq!(client.int("EXISTS job"), 0);
    assert_eq!(heard.messages(), []);
}

/// Messages are put off while nobody was seen to listen. Who has begun to since is woken, if
/// later, whatever kind of lock was left free meanwhile.
#[test]
fn who_subscribes_between_two_looks_of_the_server_is_woken() {
    let server = Server::start();
    let mut client = server.raw();
    for lock in [
        "job alice 60000",
        "pool alice 60000 LIMIT 2",
        "doc alice 60000 WRITE",
    ] {
        client.int(&format!("RLOCK.ACQUIRE {lock}"));
    }
    let mut subscriber = server.raw();
    // It has looked, and seen nobody.
    client.int("RLOCK.ACQUIRE other alice 60000");
    client.int("RLOCK.RELEASE other alice");
    let channels = [
        format!("{CHANNEL}{{job}}"),
        format!("{CHANNEL}{{pool}}"),
        "redisson_rwlock:{doc}".to_owned(),
    ];
    for channel in &channels {
        subscriber.ask(&["SUBSCRIBE", channel]);
    }
    for lock in ["job alice", "pool alice PERMITS", "doc alice WRITE"] {
        client.int(&format!("RLOCK.RELEASE {lock}"));
    }
    let mut woken = BTreeSet::new();
    while woken.len() < channels.len() {
        let message = subscriber
            .read_within(Duration::from_secs(20))
            .expect("a message");
        let channel = channels
            .iter()
            .find(|name| format!("{message:?}").contains(&name[..]));
        woken.extend(channel);
    }
}

#[test]
fn a_name_with_a_hash_tag_is_used_as_it_is() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    for (key, channel) in [
        ("{acct}:7", "{acct}:7"),
        ("job:{7}", "job:{7}"),
        ("job}", "{job}}"),
        ("a", "{a}"),
    ] {
        client.int(&format!("RLOCK.ACQUIRE {key} alice 60000"));
        client.int(&format!("RLOCK.RELEASE {key} alice"));
        assert_eq!(heard.messages(), [message(channel)]);
    }
}

#[test]
fn a_lock_that_is_handed_over_is_not_announced() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.int("RLOCK.ACQUIRE job alice 60000");
    for (owner, request) in [
        ("bob", "RLOCK.RELEASE job alice"),
        ("carol", "RLOCK.FORCE job"),
        ("dave", "RLOCK.RENEW job carol 30"),
    ] {
        let mut waiter = Waiter::with(&server, &format!("job {owner} 60000 BLOCK 0"));
        assert_eq!(client.waiters("job"), 1);
        client.int(request);
        waiter.token();
    }
    assert_eq!(heard.messages(), []);
}

#[test]
fn the_announcement_can_be_turned_off() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    assert_eq!(
        client.ask("CONFIG GET rlock.redisson-compat"),
        Value::Array(vec![bulk("rlock.redisson-compat"), bulk("yes")])
    );
    client.ok("CONFIG SET rlock.redisson-compat no");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.FORCE job");
    client.int("RLOCK.ACQUIRE job alice 20");
    eventually("the lease is over", || client.int("EXISTS job") == 0);
    // Whatever the timer has not come to yet is done now.
    assert_eq!(client.int("RLOCK.FORCE job"), 0);
    assert_eq!(heard.messages(), []);
    client.ok("CONFIG SET rlock.redisson-compat yes");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(heard.messages(), [message("{job}")]);
}

#[test]
fn subscribers_of_a_replica_receive_it_too() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut client = master.raw();
    let mut heard = Listener::patterns(&replica, &["redisson_*"]);
    client.ok("SELECT 2");
    client.int("RLOCK.ACQUIRE released alice 60000");
    client.int("RLOCK.RELEASE released alice");
    client.int("RLOCK.ACQUIRE forced alice 60000");
    client.int("RLOCK.FORCE forced");
    let seen = heard.until(&message("{forced}"));
    assert_eq!(seen, [message("{released}"), message("{forced}")]);
    client.int("RLOCK.ACQUIRE expired alice 30");
    let seen = heard.until(&message("{expired}"));
    assert_eq!(seen, [message("{expired}")]);

    client.ok("CONFIG SET rlock.redisson-compat no");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    client.ok("CONFIG SET rlock.redisson-compat yes");
    client.int("RLOCK.ACQUIRE last alice 60000");
    client.int("RLOCK.RELEASE last alice");
    let seen = heard.until(&message("{last}"));
    assert_eq!(seen, [message("{last}")]);
}

#[test]
fn subscribers_of_a_replica_receive_it_from_the_moment_it_is_in_sync() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut heard = Listener::patterns(&replica, &["redisson_*"]);
    let mut client = master.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(heard.until(&message("{job}")), [message("{job}")]);
}

#[test]
fn what_changes_nothing_breaks_no_watch() {
    let server = Server::start();
    let mut client = server.raw();
    let mut watcher = server.raw();
    for request in [
        "RLOCK.FORCE job",
        "RLOCK.RELEASE job alice",
        "RLOCK.INFO job",
    ] {
        let kept = watcher.watched("job", || client.ask(request));
        assert!(kept, "{request} on a free lock");
    }
    client.int("RLOCK.ACQUIRE job alice 60000");
    for request in [
        "RLOCK.ACQUIRE job bob 60000",
        "RLOCK.ACQUIRE job bob 60000 ONCE",
        "RLOCK.ACQUIRE job bob 60000 BLOCK 2",
        "RLOCK.ACQUIRE job alice 1000 ONCE",
        "RLOCK.ACQUIRE job mode 60000",
        "RLOCK.RELEASE job bob",
        "RLOCK.RENEW job bob 1000",
        "RLOCK.INFO job",
    ] {
        let kept = watcher.watched("job", || client.ask(request));
        assert!(kept, "{request}");
    }
    let mut waiter = server.raw();
    let kept = watcher.watched("job", || {
        waiter.send("RLOCK.ACQUIRE job bob 60000 BLOCK 0");
        eventually("it waits", || client.waiters("job") == 1);
    });
    assert!(kept, "a request that waits");
}

#[test]
fn every_change_of_a_lock_breaks_a_watch() {
    let server = Server::start();
    let mut client = server.raw();
    let mut watcher = server.raw();
    for request in [
        "RLOCK.ACQUIRE job alice 60000",
        "RLOCK.ACQUIRE job alice 1000",
        "RLOCK.RENEW job alice 60000",
        "RLOCK.RELEASE job alice",
        "RLOCK.RELEASE job alice",
        "RLOCK.ACQUIRE job alice 60000 ONCE",
        "RLOCK.FORCE job",
        "RLOCK.ACQUIRE job alice 60000",
    ] {
        let kept = watcher.watched("job", || client.int(request));
        assert!(!kept, "{request}");
    }
    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    client.int("RLOCK.RENEW job alice 500");
    let kept = watcher.watched("job", || waiter.client.read());
    assert!(!kept, "a grant after an expiry");
    client.int("RLOCK.RENEW job bob 500");
    let kept = watcher.watched("job", || {
        eventually("the lease is over", || client.int("EXISTS job") == 0);
    });
    assert!(!kept, "an expiry");
}
