//! RLOCK.TOP: the locks that most wait for; and who may look inside.

use redis::Value;

use crate::support::{
    eventually, int, list, map, now_ms, pass, user, Ask, RawClient, Server, Waiter, LONG,
};

/// One entry: database, key, waiters, oldest wait.
#[track_caller]
fn top(client: &mut RawClient, request: &str) -> Vec<(i64, Vec<u8>, i64, i64)> {
    client
        .list(request)
        .into_iter()
        .map(map)
        .map(|fields| {
            let names: Vec<_> = fields.keys().map(String::as_str).collect();
            assert_eq!(names, ["db", "key", "oldest-wait-ms", "waiters"]);
            let Value::BulkString(key) = fields["key"].clone() else {
                panic!("no key: {fields:?}");
            };
            let number = |name: &str| int(fields[name].clone());
            (
                number("db"),
                key,
                number("waiters"),
                number("oldest-wait-ms"),
            )
        })
        .collect()
}

/// The same without the wait, with keys that are text.
#[track_caller]
fn ranks(client: &mut RawClient, request: &str) -> Vec<(i64, String, i64)> {
    let text = |key| String::from_utf8(key).expect("text");
    top(client, request)
        .into_iter()
        .map(|(db, key, waiters, _)| (db, text(key), waiters))
        .collect()
}

/// So many who wait for a lock that is held, in one database.
#[track_caller]
fn crowd(server: &Server, db: i64, key: &str, count: i64) -> Vec<Waiter> {
    let mut control = server.raw();
    control.ask(&format!("SELECT {db}"));
    control.take(key, "a");
    (0..count)
        .map(|n| {
            let mut client = server.raw();
            client.ask(&format!("SELECT {db}"));
            Waiter::on(client, &format!("RLOCK.ACQUIRE {key} w{n} {LONG} BLOCK 0"))
        })
        .collect()
}

#[test]
fn the_locks_that_most_wait_for_come_first() {
    let server = Server::start();
    let mut control = server.raw();
    assert_eq!(top(&mut control, "RLOCK.TOP"), []);
    control.token("RLOCK.ACQUIRE calm a 100000");
    assert_eq!(top(&mut control, "RLOCK.TOP"), []);

    let begin = now_ms();
    let two = crowd(&server, 0, "two", 2);
    let there = now_ms();
    let five = crowd(&server, 1, "five", 5);
    let three = crowd(&server, 0, "three", 3);
    pass(there + 100);
    let expected = [(1, "five", 5), (0, "three", 3), (0, "two", 2)]
        .map(|(db, key, waiters)| (db, key.to_owned(), waiters));
    assert_eq!(ranks(&mut control, "RLOCK.TOP"), expected);
    // It is of all databases, from whichever one asks.
    control.ask("SELECT 3");
    assert_eq!(ranks(&mut control, "RLOCK.TOP"), expected);
    let found = top(&mut control, "RLOCK.TOP");
    let longest = now_ms() - begin + 1;
    let oldest = found[2].3;
    assert!((100..=longest).contains(&oldest), "{oldest}");

    drop(five);
    eventually("those who left are not counted", || {
        ranks(&mut control, "RLOCK.TOP") == expected[1..]
    });
    drop((two, three));
    eventually("nobody waits", || top(&mut control, "RLOCK.TOP").is_empty());
}

#[test]
fn ten_are_shown_unless_one_asks_for_more_or_less() {
    let server = Server::start();
    let mut control = server.raw();
    let crowds: Vec<_> = (1..=15)
        .map(|n| crowd(&server, 0, &format!("k{n}"), n))
        .collect();
    let expected: Vec<_> = (1..=15).rev().map(|n| (0, format!("k{n}"), n)).collect();
    assert_eq!(ranks(&mut control, "RLOCK.TOP"), expected[..10]);
    for count in [1, 3, 10, 15] {
        let request = format!("RLOCK.TOP COUNT {count}");
        assert_eq!(ranks(&mut control, &request), expected[..count]);
    }
    for request in ["RLOCK.TOP COUNT 16", "RLOCK.TOP count 9007199254740991"] {
        assert_eq!(ranks(&mut control, request), expected, "{request}");
    }
    drop(crowds);
}

#[test]
fn a_request_for_many_keys_counts_for_each() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE b z 100000");
    let _many = Waiter::by(&server, "RLOCK.MACQUIRE 2 a b m 1000 BLOCK 0");
    let mut found = ranks(&mut control, "RLOCK.TOP");
    found.sort();
    let expected = ["a", "b"].map(|key| (0, key.to_owned(), 1));
    assert_eq!(found, expected);
}

#[test]
fn names_may_be_any_bytes() {
    let server = Server::start();
    let mut control = server.raw();
    let key: &[u8] = b"\x00\xff key\r\n";
    control.ask(&[b"RLOCK.ACQUIRE".as_slice(), key, b"a", b"100000"]);
    let mut waiter = server.raw();
    let acquire: [&[u8]; 6] = [b"RLOCK.ACQUIRE", key, b"b", b"1000", b"BLOCK", b"0"];
    waiter.send(&acquire);
    eventually("it waits", || !top(&mut control, "RLOCK.TOP").is_empty());
    assert_eq!(top(&mut control, "RLOCK.TOP")[0].1, key);
}

#[test]
fn the_error_of_a_wrong_request_says_what_is_wrong() {
    let server = Server::start();
    let mut control = server.raw();
    for request in [
        "RLOCK.TOP 5",
        "RLOCK.TOP k",
        "RLOCK.TOP COUNT",
        "RLOCK.TOP COUNT 0",
        "RLOCK.TOP COUNT -5",
        "RLOCK.TOP COUNT ten",
        "RLOCK.TOP COUNT 9007199254740992",
        "RLOCK.TOP COUNT 5 COUNT 5",
    ] {
        let line = control.error(request);
        assert!(line.starts_with("ERR "), "{request}: {line}");
        assert!(!line.contains("unknown"), "{request}: {line}");
    }
}

#[test]
fn it_changes_nothing_and_may_be_asked_anywhere() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut control = master.raw();
    let _crowd = crowd(&master, 0, "k", 2);
    let (before, changes) = (control.state(b"k"), control.changes());
    assert_eq!(top(&mut control, "RLOCK.TOP").len(), 1);
    let replies = control.ask_all(&["MULTI", "RLOCK.TOP", "EXEC"]);
    assert_eq!(list(list(replies[2].clone()).remove(0)).len(), 1);
    assert_eq!(control.state(b"k"), before);
    assert_eq!(control.changes(), changes);
    assert_eq!(top(&mut replica.raw(), "RLOCK.TOP"), []);
}

#[test]
fn a_user_looks_at_the_keys_of_its_patterns_only() {
    let server = Server::start();
    let mut worker = user(&server, "+@all ~a*");
    for request in ["RLOCK.WAITERS", "RLOCK.INFO"] {
        assert!(!worker.denied(&format!("{request} a:1")), "{request}");
        assert!(worker.denied(&format!("{request} b")), "{request}");
    }
}

#[test]
fn a_user_looks_with_the_commands_it_was_given() {
    let server = Server::start();
    let mut worker = user(&server, "~* -@all +rlock.waiters");
    assert!(!worker.denied("RLOCK.WAITERS k"));
    assert!(worker.denied("RLOCK.TOP"));
    let mut worker = user(&server, "~* -@all +rlock.top");
    assert!(!worker.denied("RLOCK.TOP"));
    assert!(worker.denied("RLOCK.WAITERS k"));
    // Neither writes, so no writer needs it, where modules can have categories.
    if server.version().at_least(7, 2) {
        let mut writer = user(&server, "~* -@all +@write");
        for request in ["RLOCK.WAITERS k", "RLOCK.TOP"] {
            assert!(writer.denied(request), "{request}");
        }
        let mut reader = user(&server, "~* -@all +@read");
        assert!(!reader.denied("RLOCK.WAITERS k"));
    }
}

#[test]
fn the_server_knows_the_commands_and_which_argument_is_a_key() {
    let server = Server::start();
    let mut client = server.raw();
    for request in ["RLOCK.WAITERS job", "RLOCK.WAITERS job COUNT 5"] {
        let keys = client.texts(&format!("COMMAND GETKEYS {request}"));
        assert_eq!(keys, ["job"], "{request}");
    }
    let line = client.error("COMMAND GETKEYS RLOCK.TOP COUNT 5");
    assert!(line.contains("no key arguments"), "{line}");
    assert_eq!(client.ask("RLOCK.WAITERS job"), Value::Array(vec![]));
    assert_eq!(client.ask("RLOCK.TOP"), Value::Array(vec![]));
    let mut commands = client.texts("COMMAND LIST FILTERBY MODULE rlock");
    commands.sort();
    let names = [
        "acquire",
        "cancel",
        "force",
        "heartbeat",
        "help",
        "info",
        "limit",
        "list",
        "macquire",
        "mrelease",
        "mrenew",
        "owner",
        "release",
        "renew",
        "top",
        "waiters",
    ];
    assert_eq!(commands, names.map(|name| format!("rlock.{name}")));
}
