//! Read/write locks in transactions, scripts and functions; and for clients that
//! WATCH them.

use redis::Value;

use crate::support::{both_ways, bulk, token, Ask, RawClient, Server, Way};

/// The replies within a transaction.
#[track_caller]
fn transaction(client: &mut RawClient, requests: &[&str]) -> Vec<Value> {
    client.ok("MULTI");
    for request in requests {
        assert_eq!(client.text(request), "QUEUED");
    }
    client.list("EXEC")
}

#[test]
fn a_transaction_locks_as_commands_do() {
    let server = Server::start();
    let mut client = server.raw();
    let replies = transaction(
        &mut client,
        &[
            "RLOCK.ACQUIRE doc alice 60000 READ",
            "RLOCK.ACQUIRE doc bob 60000 READ",
            "RLOCK.ACQUIRE doc alice 60000 READ",
            "RLOCK.ACQUIRE doc alice 60000 WRITE",
            "RLOCK.RELEASE doc bob READ",
            "RLOCK.ACQUIRE doc alice 60000 WRITE",
            "RLOCK.ACQUIRE doc bob 60000 READ",
            "RLOCK.RELEASE doc alice WRITE",
            "RLOCK.ACQUIRE doc bob 60000 READ",
            "HGETALL doc",
        ],
    );
    let first = token(replies[0].clone());
    assert!(token(replies[1].clone()) > first);
    assert_eq!(replies[2], Value::Int(first));
    assert_eq!(replies[3], Value::Nil, "bob reads too");
    assert!(token(replies[5].clone()) > first);
    assert_eq!(replies[6], Value::Nil, "alice writes");
    assert_eq!(replies[7], Value::Int(0));
    token(replies[8].clone());
    assert_eq!(client.hash("doc"), "alice=2 bob=1 mode=read");
}

both_ways!(a_release_in_a_transaction_grants_within_it);
fn a_release_in_a_transaction_grants_within_it(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let mut writer = by.write(&server, "doc", "w");
    let replies = transaction(
        &mut client,
        &[
            "RLOCK.RELEASE doc alice WRITE",
            "HLEN doc",
            "RLOCK.ACQUIRE doc c 1000 READ",
            "RLOCK.RELEASE doc a READ",
            "RLOCK.RELEASE doc b READ",
            "HGET doc w:write",
        ],
    );
    let expected = [
        Value::Int(0),
        Value::Int(3),
        Value::Nil,
        Value::Int(0),
        Value::Int(0),
        bulk("1"),
    ];
    assert_eq!(replies, expected);
    for reader in &mut readers {
        reader.token();
    }
    writer.token();
}

both_ways!(where_nobody_may_wait_block_tries_once);
fn where_nobody_may_wait_block_tries_once(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let library = "#!lua name=rlocktest\n\
        redis.register_function('put', function(keys, args) \
        return redis.pcall(unpack(args)) end)";
    client.ask(&["FUNCTION", "LOAD", library]);
    let mut upgrade = by.write(&server, "doc", "alice");
    for (owner, mode) in [
        ("w", "WRITE"),
        ("c", "READ"),
        ("bob", "WRITE"),
        ("p", "ONCE"),
    ] {
        let request = ["RLOCK.ACQUIRE", "doc", owner, "1000", mode, "BLOCK", "0"];
        let ways: [&[&str]; 2] = [
            &["EVAL", "return redis.call(unpack(ARGV))", "0"],
            &["FCALL", "put", "0"],
        ];
        for way in ways {
            // A try never gets DEADLOCK, also where it was asked to wait.
            assert!(client.refused(&[way, &request].concat()), "{request:?}");
        }
        assert_eq!(
            transaction(&mut client, &[&request.join(" ")]),
            [Value::Nil]
        );
    }
    assert_eq!(client.waiters("doc"), 1);
    assert_eq!(client.held_by("doc"), "alice read 1, bob read 1");
    client.int("RLOCK.RELEASE doc bob READ");
    upgrade.token();
}

#[test]
fn a_script_reads_writes_and_goes_on_reading() {
    let server = Server::start();
    let mut client = server.raw();
    let script = "
        local function lock(...) return redis.call('RLOCK.ACQUIRE', KEYS[1], ...) end
        local read = lock('carol', 60000, 'READ')
        local write = lock('carol', 60000, 'WRITE')
        local other = lock('other', 60000, 'READ')
        local left = redis.call('RLOCK.RELEASE', KEYS[1], 'carol', 'WRITE')
        local then_ = lock('other', 60000, 'READ')
        return {read, write, tostring(other), left, then_,
            redis.call('RLOCK.RENEW', KEYS[1], 'carol', 90000, 'READ'),
            redis.call('RLOCK.RELEASE', KEYS[1], 'carol', 'READ'),
            redis.call('RLOCK.RELEASE', KEYS[1], 'other', 'READ', 'ALL')}";
    let replies = client.list(&["EVAL", script, "1", "doc"]);
    let read = token(replies[0].clone());
    let write = token(replies[1].clone());
    assert!(write > read);
    assert_eq!(replies[2..4], [bulk("false"), Value::Int(0)]);
    assert!(token(replies[4].clone()) > write);
    assert_eq!(replies[5..], [Value::Int(1), Value::Int(0), Value::Int(0)]);
    client.nothing_left("doc");
}

both_ways!(a_script_that_frees_the_lock_grants_it);
fn a_script_that_frees_the_lock_grants_it(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "r");
    let script = "redis.call('RLOCK.RELEASE', KEYS[1], 'alice', 'READ')
        return redis.call('HGET', KEYS[1], 'w:write')";
    assert_eq!(client.ask(&["EVAL", script, "1", "doc"]), bulk("1"));
    writer.token();
    let script = "return redis.call('DEL', KEYS[1])";
    assert_eq!(client.int(&["EVAL", script, "1", "doc"]), 1);
    reader.token();
}

both_ways!(what_changes_nothing_breaks_no_watch_and_every_change_does);
fn what_changes_nothing_breaks_no_watch_and_every_change_does(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let mut watcher = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    for request in [
        "RLOCK.ACQUIRE doc w 1000 WRITE",
        "RLOCK.ACQUIRE doc w 1000 WRITE BLOCK 2",
        "RLOCK.ACQUIRE doc alice 1000 WRITE",
        "RLOCK.ACQUIRE doc alice 1000 READ ONCE",
        "RLOCK.ACQUIRE doc alice 1000",
        "RLOCK.RELEASE doc alice WRITE",
        "RLOCK.RENEW doc w 1000 READ",
        "RLOCK.INFO doc",
    ] {
        let kept = watcher.watched("doc", || client.ask(request));
        assert!(kept, "{request}");
    }
    for request in [
        "RLOCK.ACQUIRE doc carol 60000 READ",
        "RLOCK.ACQUIRE doc carol 1000 READ",
        "RLOCK.RELEASE doc carol READ",
        "RLOCK.RELEASE doc carol READ",
        "RLOCK.RELEASE doc bob READ",
        "RLOCK.ACQUIRE doc alice 60000 WRITE",
        "RLOCK.RENEW doc alice 60000 WRITE",
        "RLOCK.RELEASE doc alice WRITE",
        "RLOCK.FORCE doc",
        "RLOCK.ACQUIRE doc alice 60000 WRITE",
    ] {
        let kept = watcher.watched("doc", || client.int(request));
        assert!(!kept, "{request}");
    }
    let mut reader = by.read(&server, "doc", "r");
    let kept = watcher.watched("doc", || {
        client.int("RLOCK.RENEW doc alice 100 WRITE");
        reader.token()
    });
    assert!(!kept, "a grant");
}
