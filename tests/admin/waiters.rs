//! RLOCK.WAITERS: who waits for a lock, in the order of the queue.

use crate::support::{
    bulk, eventually, int, list, map, now_ms, pass, text, Ask, RawClient, Server, Waiter,
};

/// One entry.
#[derive(Debug, PartialEq)]
struct Waiting {
    owner: String,
    mode: String,
    client: i64,
    waited_ms: i64,
}

#[track_caller]
fn waiters(client: &mut RawClient, request: &str) -> Vec<Waiting> {
    let entries = client.list(&format!("RLOCK.WAITERS {request}"));
    entries
        .into_iter()
        .map(map)
        .map(|fields| {
            let names: Vec<_> = fields.keys().map(String::as_str).collect();
            assert_eq!(names, ["client-id", "mode", "owner", "waited-ms"]);
            Waiting {
                owner: text(fields["owner"].clone()),
                mode: text(fields["mode"].clone()),
                client: int(fields["client-id"].clone()),
                waited_ms: int(fields["waited-ms"].clone()),
            }
        })
        .collect()
}

#[track_caller]
fn owners(client: &mut RawClient, request: &str) -> Vec<String> {
    let entries = waiters(client, request).into_iter();
    entries.map(|entry| entry.owner).collect()
}

#[test]
fn who_was_killed_just_before_is_not_shown() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let _waiter = Waiter::new(&server, "k", "b");
    assert_eq!(owners(&mut control, "k"), ["b"]);
    let replies = control.ask_all(&["CLIENT KILL TYPE normal", "RLOCK.WAITERS k", "RLOCK.TOP"]);
    for reply in replies.into_iter().skip(1) {
        assert_eq!(list(reply), []);
    }
}

#[test]
fn they_are_shown_in_the_order_of_the_queue() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    assert_eq!(waiters(&mut control, "k"), []);
    assert_eq!(waiters(&mut control, "nobody:knows"), []);
    let begin = now_ms();
    let mut queue: Vec<_> = ["b", "c", "d"]
        .into_iter()
        .map(|owner| Waiter::new(&server, "k", owner))
        .collect();
    let there = now_ms();
    pass(there + 150);
    let found = waiters(&mut control, "k");
    let longest = now_ms() - begin + 1;
    for (entry, (waiter, owner)) in found.iter().zip(queue.iter().zip(["b", "c", "d"])) {
        assert_eq!(
            (entry.owner.as_str(), entry.mode.as_str()),
            (owner, "exclusive")
        );
        assert_eq!(entry.client, waiter.id);
        assert!((150..=longest).contains(&entry.waited_ms), "{entry:?}");
    }
    assert_eq!(found.len(), 3);
    let waited: Vec<_> = found.iter().map(|entry| entry.waited_ms).collect();
    assert!(
        waited.windows(2).all(|pair| pair[0] >= pair[1]),
        "{waited:?}"
    );

    // Who leaves is listed no more, who is granted neither.
    control.ask(&format!("CLIENT UNBLOCK {}", queue[1].id));
    assert_eq!(owners(&mut control, "k"), ["b", "d"]);
    control.ask("RLOCK.RELEASE k a");
    queue[0].token();
    assert_eq!(owners(&mut control, "k"), ["d"]);
    queue.pop().expect("d").client.close();
    eventually("d is gone", || owners(&mut control, "k").is_empty());
}

#[test]
fn so_many_of_them_are_shown_as_one_asks_for() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let queue: Vec<_> = (0..200)
        .map(|n| Waiter::new(&server, "k", &format!("w{n}")))
        .collect();
    let all: Vec<_> = (0..200).map(|n| format!("w{n}")).collect();
    assert_eq!(owners(&mut control, "k"), all);
    for count in [1, 7, 199, 200] {
        let request = format!("k COUNT {count}");
        assert_eq!(owners(&mut control, &request), all[..count]);
    }
    for request in ["k COUNT 201", "k count 9007199254740991"] {
        assert_eq!(owners(&mut control, request), all, "{request}");
    }
    assert_eq!(control.counter("rlock_waiting"), 200);
    drop(queue);
    control.has_waiters("k", 0);
}

#[test]
fn readers_writers_and_upgrades_are_told_apart() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k r1 100000 READ");
    control.token("RLOCK.ACQUIRE k r2 100000 READ");
    let _queue = [
        Waiter::by(&server, "RLOCK.ACQUIRE k w 1000 WRITE BLOCK 0"),
        Waiter::by(&server, "RLOCK.ACQUIRE k r3 1000 READ BLOCK 0"),
        Waiter::by(&server, "RLOCK.ACQUIRE k plain 1000 BLOCK 0"),
        // Ahead of all others.
        Waiter::by(&server, "RLOCK.ACQUIRE k r1 1000 WRITE BLOCK 0"),
    ];
    let found: Vec<_> = waiters(&mut control, "k")
        .into_iter()
        .map(|entry| (entry.owner, entry.mode))
        .collect();
    let expected = [
        ("r1", "write"),
        ("w", "write"),
        ("r3", "read"),
        ("plain", "exclusive"),
    ];
    let expected = expected.map(|(owner, mode)| (owner.to_owned(), mode.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn who_waits_for_many_keys_is_shown_under_each() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE b z 100000");
    let mut many = Waiter::by(&server, "RLOCK.MACQUIRE 3 a b c m 1000 BLOCK 0");
    let behind = Waiter::new(&server, "c", "y");
    for key in ["a", "b", "c"] {
        let found = waiters(&mut control, key);
        assert_eq!(
            (found[0].owner.as_str(), found[0].mode.as_str()),
            ("m", "exclusive")
        );
        assert_eq!(found[0].client, many.id, "{key}");
    }
    assert_eq!(owners(&mut control, "c"), ["m", "y"]);
    drop(behind);
    control.ask("RLOCK.RELEASE b z");
    many.token();
    for key in ["a", "b"] {
        assert_eq!(owners(&mut control, key), [""; 0]);
    }
}

#[test]
fn names_may_be_any_bytes() {
    let server = Server::start();
    let mut control = server.raw();
    let key: &[u8] = b"\x00\xff key\r\n";
    let owner: &[u8] = b"\xfe\x00 owner\r\n";
    let acquire: [&[u8]; 6] = [b"RLOCK.ACQUIRE", key, owner, b"1000", b"BLOCK", b"0"];
    control.ask(&[b"RLOCK.ACQUIRE".as_slice(), key, b"a", b"100000"]);
    let mut waiter = server.raw();
    waiter.send(&acquire);
    let request = [b"RLOCK.WAITERS".as_slice(), key];
    eventually("it waits", || !control.list(&request).is_empty());
    let found = map(control.list(&request).remove(0));
    assert_eq!(found["owner"], bulk(owner));
    assert_eq!(found["mode"], bulk("exclusive"));
}

#[test]
fn the_queue_is_that_of_one_database() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let _waiter = Waiter::new(&server, "k", "b");
    control.ask("SELECT 1");
    assert_eq!(waiters(&mut control, "k"), []);
    control.ask("SELECT 0");
    assert_eq!(owners(&mut control, "k"), ["b"]);
}

#[test]
fn the_error_of_a_wrong_request_says_what_is_wrong() {
    let server = Server::start();
    let mut control = server.raw();
    for request in [
        "RLOCK.WAITERS",
        "RLOCK.WAITERS k 5",
        "RLOCK.WAITERS k COUNT",
        "RLOCK.WAITERS k COUNT 0",
        "RLOCK.WAITERS k COUNT -1",
        "RLOCK.WAITERS k COUNT x",
        "RLOCK.WAITERS k COUNT 1.5",
        "RLOCK.WAITERS k COUNT 01",
        "RLOCK.WAITERS k COUNT 9007199254740992",
        "RLOCK.WAITERS k COUNT 99999999999999999999999",
        "RLOCK.WAITERS k COUNT 5 COUNT 5",
        "RLOCK.WAITERS k COUNT 5 x",
        "RLOCK.WAITERS k LIMIT 5",
    ] {
        let line = control.error(request);
        assert!(line.starts_with("ERR "), "{request}: {line}");
        assert!(!line.contains("unknown"), "{request}: {line}");
        assert!(line.len() <= 512, "{request}: {line}");
    }
}

#[test]
fn it_changes_nothing_and_may_be_asked_anywhere() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut control = master.raw();
    control.token("RLOCK.ACQUIRE k a 100000");
    let _waiter = Waiter::new(&master, "k", "b");
    let (before, changes) = (control.state(b"k"), control.changes());
    assert_eq!(owners(&mut control, "k"), ["b"]);
    let replies = control.ask_all(&["MULTI", "RLOCK.WAITERS k", "EXEC"]);
    assert_eq!(list(list(replies[2].clone()).remove(0)).len(), 1);
    let script = "return #redis.call('RLOCK.WAITERS', KEYS[1])";
    assert_eq!(control.int(&["EVAL_RO", script, "1", "k"]), 1);
    assert_eq!(control.state(b"k"), before);
    assert_eq!(control.changes(), changes);
    // Queues are the master's own.
    assert_eq!(waiters(&mut replica.raw(), "k"), []);
}
