//! RLOCK.INFO: what it tells of a lock, and that it changes nothing.

use std::collections::BTreeMap;
use std::time::Instant;

use redis::Value;

use crate::support::{bulk, eventually, int, list, map, now_ms, Ask, RawClient, Server, Waiter};

#[track_caller]
fn info(client: &mut RawClient, key: &str) -> BTreeMap<String, Value> {
    client.map(&["RLOCK.INFO", key])
}

/// The only holder.
#[track_caller]
fn holder(info: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut holders = list(info["holders"].clone());
    assert_eq!(holders.len(), 1, "{info:?}");
    map(holders.remove(0))
}

#[track_caller]
fn assert_free(info: &BTreeMap<String, Value>) {
    assert_eq!(info["mode"], bulk("free"));
    assert_eq!(info["holders"], Value::Array(vec![]));
    assert_eq!(info["waiters"], Value::Int(0));
    assert_eq!(info["oldest-wait-ms"], Value::Nil);
}

#[test]
fn a_free_lock_has_nobody() {
    let server = Server::start();
    let mut client = server.raw();
    assert_free(&info(&mut client, "job"));
    client.int("RLOCK.ACQUIRE job alice 10000");
    client.int("RLOCK.RELEASE job alice");
    assert_free(&info(&mut client, "job"));
    client.int("RLOCK.ACQUIRE job alice 20");
    let end = client.deadline("job");
    eventually("the lease is over", || now_ms() > end + 1);
    assert_free(&info(&mut client, "job"));
    assert_eq!(client.int("EXISTS job"), 0);
}

#[test]
fn a_held_lock_shows_its_holder() {
    let server = Server::start();
    let mut client = server.raw();
    let begin = Instant::now();
    let token = client.int("RLOCK.ACQUIRE job alice 10000");
    let granted = Instant::now();
    assert_eq!(client.int("RLOCK.ACQUIRE job alice 5000"), token);
    eventually("some ms of the lease are gone", || {
        client.int("PTTL job") < 9_990
    });

    let longest = client.int("PTTL job");
    let at_least = granted.elapsed().as_millis() as i64;
    let told = info(&mut client, "job");
    let at_most = begin.elapsed().as_millis() as i64 + 1;
    let shortest = client.int("PTTL job");

    assert_eq!(told["mode"], bulk("exclusive"));
    assert_eq!(told["waiters"], Value::Int(0));
    assert_eq!(told["oldest-wait-ms"], Value::Nil);
    let holder = holder(&told);
    assert_eq!(holder["owner"], bulk("alice"));
    assert_eq!(holder["mode"], bulk("exclusive"));
    assert_eq!(holder["holds"], Value::Int(2));
    assert_eq!(holder["token"], Value::Int(token));
    let remaining = int(holder["remaining-ms"].clone());
    assert!((shortest..=longest).contains(&remaining), "{remaining}");
    let held = int(holder["held-ms"].clone());
    assert!((at_least..=at_most).contains(&held), "{held}");
}

#[test]
fn held_ms_counts_from_the_first_hold_of_the_current_holder() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 10000");
    eventually("alice has held it for a while", || {
        int(holder(&info(&mut client, "job"))["held-ms"].clone()) >= 300
    });
    client.int("RLOCK.ACQUIRE job alice 10000");
    client.int("RLOCK.RENEW job alice 10000");
    assert!(int(holder(&info(&mut client, "job"))["held-ms"].clone()) >= 300);
    client.int("RLOCK.RELEASE job alice ALL");
    let begin = Instant::now();
    let token = client.int("RLOCK.ACQUIRE job bob 10000");
    let told = holder(&info(&mut client, "job"));
    let at_most = begin.elapsed().as_millis() as i64 + 1;
    assert!(int(told["held-ms"].clone()) <= at_most, "{told:?}");
    assert_eq!(told["token"], Value::Int(token));
}

#[test]
fn waiters_are_counted_and_the_oldest_wait_is_shown() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    let begin = Instant::now();
    let mut waiters = Vec::new();
    for count in 1..=3 {
        let args = format!("job owner:{count} 60000 BLOCK 0");
        waiters.push(Waiter::with(&server, &args));
        assert_eq!(info(&mut client, "job")["waiters"], Value::Int(count));
    }
    eventually("the first has waited 50 ms", || {
        int(info(&mut client, "job")["oldest-wait-ms"].clone()) >= 50
    });
    let oldest = int(info(&mut client, "job")["oldest-wait-ms"].clone());
    assert!(oldest <= begin.elapsed().as_millis() as i64 + 1);
    assert!(begin.elapsed().as_millis() >= 50);
    // The queue is that of one lock in one database.
    assert_free(&info(&mut client, "other"));
    client.ok("SELECT 1");
    assert_free(&info(&mut client, "job"));
    client.ok("SELECT 0");

    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    let told = info(&mut client, "job");
    assert_eq!(told["waiters"], Value::Int(2));
    assert_eq!(holder(&told)["owner"], bulk("owner:1"));
    drop(waiters);
    eventually("those who closed wait no more", || {
        info(&mut client, "job")["waiters"] == Value::Int(0)
    });
    assert_eq!(info(&mut client, "job")["oldest-wait-ms"], Value::Nil);
}

#[test]
fn what_the_server_does_not_know_is_null() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET job uuid:1 3");
    client.int("PEXPIRE job 60000");
    let told = info(&mut client, "job");
    assert_eq!(told["mode"], bulk("exclusive"));
    let foreign = holder(&told);
    assert_eq!(foreign["owner"], bulk("uuid:1"));
    assert_eq!(foreign["holds"], Value::Int(3));
    assert_eq!(foreign["token"], Value::Nil);
    assert_eq!(foreign["held-ms"], Value::Nil);
    assert!((50_000..=60_000).contains(&int(foreign["remaining-ms"].clone())));

    client.int("RLOCK.ACQUIRE endless alice 1000");
    client.int("PERSIST endless");
    let endless = holder(&info(&mut client, "endless"));
    assert_eq!(endless["remaining-ms"], Value::Nil);
    assert_ne!(endless["token"], Value::Nil);
}

#[test]
fn a_read_write_lock_of_redissons_is_described() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("HSET doc mode read uuid:1 2 uuid:2 1");
    for lease in ["uuid:1:rwlock_timeout:1", "uuid:1:rwlock_timeout:2"] {
        client.ok(&format!("SET {{doc}}:{lease} 1 PX 60000"));
    }
    client.ok("SET {doc}:uuid:2:rwlock_timeout:1 1 PX 60000");
    client.int("PEXPIRE doc 60000");
    let told = info(&mut client, "doc");
    assert_eq!(told["mode"], bulk("read"));
    let mut readers: Vec<_> = list(told["holders"].clone())
        .into_iter()
        .map(map)
        .map(|h| (h["owner"].clone(), h["mode"].clone(), h["holds"].clone()))
        .collect();
    readers.sort_by_key(|(_, _, holds)| int(holds.clone()));
    assert_eq!(
        readers,
        [
            (bulk("uuid:2"), bulk("read"), Value::Int(1)),
            (bulk("uuid:1"), bulk("read"), Value::Int(2)),
        ]
    );

    client.int("HSET page mode write uuid:1:write 2");
    client.int("PEXPIRE page 60000");
    let told = info(&mut client, "page");
    assert_eq!(told["mode"], bulk("write"));
    let writer = holder(&told);
    assert_eq!(writer["owner"], bulk("uuid:1"));
    assert_eq!(writer["mode"], bulk("write"));
    assert_eq!(writer["holds"], Value::Int(2));
}

#[test]
fn it_changes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.succeed(&["HSET found bob 1", "PEXPIRE found 60000"]);
    client.succeed(&["HSET found bob 1", "PEXPIRE found 60000"]);
    let mut watcher = server.raw();
    watcher.ok("WATCH job found free");
    let (job, found) = (client.state(b"job"), client.state(b"found"));
    let changes = client.changes();
    for key in ["job", "found", "free"] {
        info(&mut client, key);
    }
    assert_eq!(client.state(b"job"), job);
    assert_eq!(client.state(b"found"), found);
    assert_eq!(client.changes(), changes);
    watcher.ok("MULTI");
    watcher.ask("PING");
    assert_ne!(watcher.ask("EXEC"), Value::Nil);
}

#[test]
fn it_is_allowed_in_transactions_and_read_only_scripts() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.ok("MULTI");
    client.ask("RLOCK.INFO job");
    let mut replies = client.list("EXEC");
    assert_eq!(map(replies.remove(0))["mode"], bulk("exclusive"));
    let script = "return redis.call('RLOCK.INFO', KEYS[1])[2]";
    let mode = client.ask(&["EVAL_RO", script, "1", "job"]);
    assert_eq!(mode, bulk("exclusive"));
}
