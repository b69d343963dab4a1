//! RLOCK.LIST page by page: cursors and COUNT.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::{cluster, Ask, RawClient, Server};

use super::*;

#[test]
fn what_is_held_all_the_time_comes_once_whatever_else_comes_and_goes() {
    let server = Server::start();
    let (mut client, mut other) = (server.raw(), server.raw());
    const STAY: usize = 600;
    const MOVE: usize = 900;
    let take = |name: &str, number: usize| format!("RLOCK.ACQUIRE {name}:{number} o 100000");
    let stay: Vec<String> = (0..STAY).map(|number| take("stay", number)).collect();
    other.succeed(&stay);
    let moving: Vec<String> = (0..MOVE).map(|number| take("move", number)).collect();
    for count in [3, 50, 1000] {
        let mut turn = 0;
        let (all, _) = pages(&mut client, &format!("COUNT {count}"), |number| {
            // Some come, and some go.
            turn += 1;
            let at = (number * 37) % (MOVE - 40);
            let requests: Vec<String> = (at..at + 40)
                .map(|other| match turn % 2 {
                    0 => format!("RLOCK.RELEASE move:{other} o"),
                    _ => moving[other].clone(),
                })
                .collect();
            other.ask_all(&requests);
        });
        let mut times = BTreeMap::new();
        for (key, _, _) in all {
            *times.entry(key).or_insert(0) += 1;
        }
        for number in 0..STAY {
            let key = format!("stay:{number}").into_bytes();
            assert_eq!(times.get(&key), Some(&1), "COUNT {count}: {number}");
        }
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "COUNT {count}: {twice:?}");
    }
}

#[test]
fn many_readers_of_one_lock_go_over_several_pages() {
    let server = Server::start();
    let (mut client, mut other) = (server.raw(), server.raw());
    let read = |number: usize| format!("RLOCK.ACQUIRE doc r{number:03} 100000 READ");
    let stay: Vec<String> = (0..100).step_by(2).map(read).collect();
    other.succeed(&stay);
    for key in ["a", "z"] {
        other.token(&format!("RLOCK.ACQUIRE {key} o 100000"));
    }
    let (all, number) = pages(&mut client, "COUNT 7", |number| {
        let reader = number * 14 + 1;
        other.ask(&read(reader));
        other.ask(&format!("RLOCK.RELEASE doc r{:03} READ", number * 14 + 3));
        other.ask(&read(number));
        other.ask(&format!("RLOCK.RELEASE doc r{number:03} READ"));
    });
    assert!(number >= 8, "{number}");
    for reader in (20..100).step_by(2) {
        let owner = format!("r{reader:03}").into_bytes();
        let times = all.iter().filter(|(_, other, _)| *other == owner).count();
        assert_eq!(times, 1, "{reader}");
    }
    let mut owners: Vec<_> = all.iter().map(|(key, owner, _)| (key, owner)).collect();
    let count = owners.len();
    owners.sort();
    owners.dedup();
    assert_eq!(owners.len(), count, "nobody comes twice");
    // One by one, an owner that writes and reads with both.
    other.token("RLOCK.ACQUIRE book w 100000 WRITE");
    other.token("RLOCK.ACQUIRE book w 100000 READ");
    let (all, _) = pages(&mut client, "COUNT 1 MATCH book", |_| ());
    let modes: Vec<_> = all.iter().map(|(_, _, mode)| mode.as_str()).collect();
    assert_eq!(modes, ["write", "read"]);
}

#[test]
fn count_bounds_what_is_looked_at_and_not_what_is_shown() {
    let server = Server::start();
    let mut client = server.raw();
    let take = |number| format!("RLOCK.ACQUIRE k:{number} o 100000");
    client.succeed(&(0..95).map(take).collect::<Vec<_>>());
    for (words, most, told) in [
        ("", 10, 95),
        ("COUNT 10 MATCH other", 10, 0),
        ("COUNT 10 OWNER other", 10, 0),
        ("COUNT 20 HELD-LONGER 900000", 20, 0),
        ("COUNT 95", 95, 95),
        ("COUNT 9007199254740991", 95, 95),
    ] {
        let (all, number) = pages(&mut client, words, |_| ());
        assert_eq!(all.len(), told, "{words}");
        assert!(
            (95_usize.div_ceil(most)..=95 / most + 1).contains(&number),
            "{words}: {number}"
        );
    }
    let (_, first) = after(&mut client, b"0", "");
    assert_eq!(first.len(), 10);
    client.succeed(&(95..300).map(take).collect::<Vec<_>>());
    let (_, most) = after(&mut client, b"0", "COUNT 1000");
    assert_eq!(most.len(), 250);
    client.succeed(&(95..300).map(|n| format!("DEL k:{n}")).collect::<Vec<_>>());
    // Names that are only waited for count as well.
    let mut waiters: Vec<RawClient> = Vec::new();
    for number in 0..30 {
        let mut waiter = server.raw();
        waiter.send(&format!(
            "RLOCK.MACQUIRE 2 free:{number} k:0 w{number} 1000 BLOCK 0"
        ));
        waiters.push(waiter);
    }
    client.has_waiters("k:0", 30);
    let (all, number) = pages(&mut client, "COUNT 5", |_| ());
    assert_eq!(all.len(), 95);
    assert!(number >= 25, "{number}");
}

#[test]
fn names_and_owners_may_be_any_bytes() {
    let server = Server::start();
    let mut client = server.raw();
    let words: [&[u8]; 6] = [b"-", b"\x00", b"\xff\xfe", b"a b\r\n", b"0", b"\x00\xff"];
    let mut expected = Vec::new();
    for name in words.into_iter().chain([b"".as_slice()]) {
        for owner in words {
            client.ask(&[b"RLOCK.ACQUIRE".as_slice(), name, owner, b"100000", b"READ"]);
            expected.push((name.to_vec(), owner.to_vec(), "read".to_owned()));
        }
    }
    expected.sort();
    for count in [1, 4, 100] {
        let (mut all, _) = pages(&mut client, &format!("COUNT {count}"), |_| ());
        all.sort();
        assert_eq!(all, expected, "COUNT {count}");
    }
    let request: [&[u8]; 5] = [b"RLOCK.LIST", b"MATCH", b"\xff[\xfe]", b"COUNT", b"100"];
    assert_eq!(page(client.ask(&request)).1.len(), 6);
    let request: [&[u8]; 5] = [b"RLOCK.LIST", b"OWNER", b"\x00", b"COUNT", b"100"];
    assert_eq!(page(client.ask(&request)).1.len(), 14);
}

#[test]
fn a_cursor_of_an_earlier_run_is_refused() {
    let mut server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE a o 100000");
    client.token("RLOCK.ACQUIRE b o 100000");
    let (cursor, _) = after(&mut client, b"0", "COUNT 1");
    let request = [b"RLOCK.LIST".as_slice(), b"CURSOR", &cursor];
    server.restart();
    let mut client = server.raw();
    for _ in 0..2 {
        let line = client.error(&request);
        assert!(
            line.starts_with("ERR the cursor is of another server"),
            "{line}"
        );
        client.token("RLOCK.ACQUIRE c o 100000");
    }
}

#[test]
fn the_error_of_a_wrong_request_says_what_is_wrong() {
    let server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k o 100000");
    let long = format!("RLOCK.LIST MATCH {}", "*".repeat(1025));
    for (request, what) in [
        ("RLOCK.LIST k", "syntax error at 'k'"),
        ("RLOCK.LIST 0", "syntax error at '0'"),
        ("RLOCK.LIST CURSOR", "CURSOR needs something behind it"),
        ("RLOCK.LIST MATCH", "MATCH needs something behind it"),
        ("RLOCK.LIST OWNER", "OWNER needs something behind it"),
        (
            "RLOCK.LIST HELD-LONGER",
            "HELD-LONGER needs something behind it",
        ),
        (
            "RLOCK.LIST HELD-LONGER x",
            "HELD-LONGER must be a whole number of ms",
        ),
        (
            "RLOCK.LIST HELD-LONGER -1",
            "HELD-LONGER must be a whole number of ms",
        ),
        ("RLOCK.LIST COUNT 0", "COUNT must be a whole number from 1"),
        ("RLOCK.LIST COUNT", "COUNT"),
        ("RLOCK.LIST CURSOR 0 CURSOR 0", "syntax error at 'CURSOR'"),
        ("RLOCK.LIST MATCH a MATCH b", "syntax error at 'MATCH'"),
        (
            "RLOCK.LIST CURSOR 1",
            "the cursor must be one that RLOCK.LIST has replied",
        ),
        ("RLOCK.LIST CURSOR 17-61", "the cursor must be one that"),
        (
            "RLOCK.LIST CURSOR 0000000000000000-6",
            "the cursor must be one that",
        ),
        (
            "RLOCK.LIST CURSOR 0000000000000000-61",
            "begin again with CURSOR 0",
        ),
        (
            &long,
            "the pattern must be at most 1024 bytes long, got 1025",
        ),
    ] {
        let line = client.error(request);
        assert!(
            line.starts_with("ERR ") && line.contains(what),
            "{request}: {line}"
        );
    }
    let hostile = format!("RLOCK.LIST MATCH {}b", "*a".repeat(500));
    assert_eq!(page(client.ask(&hostile)).1, []);
}

#[test]
fn a_node_lists_the_locks_of_all_its_slots() {
    let server = cluster();
    let mut client = server.raw();
    for key in ["a", "b", "{c}doc"] {
        client.token(&format!("RLOCK.ACQUIRE {key} o 100000 READ"));
    }
    for count in ["", "COUNT 1"] {
        assert_eq!(listed(&mut client, count), "a=o b=o {c}doc=o");
        // Whatever the connection asked for before.
        client.int("EXISTS b");
    }
    let script = "return redis.call('RLOCK.LIST')";
    for request in [["EVAL", script, "0", ""], ["EVAL", script, "1", "a"]] {
        let line = client.error(&request);
        assert!(line.contains("in a cluster this is refused in"), "{line}");
    }
    let replies = client.ask_all(&["MULTI", "EXISTS a", "RLOCK.LIST", "EXEC"]);
    let Value::Array(replies) = &replies[3] else {
        panic!("{replies:?}");
    };
    assert!(matches!(replies[1], Value::ServerError(_)), "{replies:?}");
}
