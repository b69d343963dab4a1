//! Waiting for a lock, and being granted it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use redis::Value;

use crate::support::{
    both_ways, bulk, code, ends_from, eventually, int, list, longest, now_ms, pong, token, Ask,
    Server, Way, BOUND, LONG,
};

both_ways!(waiters_are_granted_in_order_of_arrival);
fn waiters_are_granted_in_order_of_arrival(by: Way) {
    const WAITERS: i64 = 200;
    let server = Server::start();
    let mut control = server.raw();
    let mut last = control.token("RLOCK.ACQUIRE k w0 100000");
    let mut waiters: Vec<_> = (1..=WAITERS)
        .map(|n| by.wait(&server, "k", &format!("w{n}")))
        .collect();
    for (n, waiter) in waiters.iter_mut().enumerate() {
        assert_eq!(control.int(&format!("RLOCK.RELEASE k w{n}")), 0);
        let next = format!("w{}", n + 1);
        assert_eq!(control.hash("k"), format!("{next}=1"));
        let granted = waiter.token();
        assert!(granted > last, "{granted} after {last}");
        last = granted;
        let found = control.info("k");
        assert_eq!(found.holds(), [(next.as_str(), 1, Some(granted))]);
        assert_eq!(found.waiters, WAITERS - 1 - n as i64);
    }
    control.ask(&format!("RLOCK.RELEASE k w{WAITERS}"));
    control.is_free("k");
}

both_ways!(a_release_gives_the_lock_to_the_next_in_the_same_step);
fn a_release_gives_the_lock_to_the_next_in_the_same_step(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let owner = |name: &str| Value::BulkString(name.into());
    let held_by = |name: &str| Value::Array(vec![owner(name), owner("1")]);

    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut b = by.wait(&server, "k", "b");
    let mut c = by.wait(&server, "k", "c");
    let replies = control.ask_all(&[
        "RLOCK.RELEASE k a",
        "HGETALL k",
        "RLOCK.ACQUIRE k a 1000",
        "RLOCK.ACQUIRE k d 1000",
        "RLOCK.RELEASE k b",
        "HGETALL k",
        "RLOCK.RELEASE k a",
    ]);
    assert_eq!(replies[0], Value::Int(0));
    assert_eq!(replies[1], held_by("b"));
    assert_eq!(replies[2], Value::Nil, "the last holder does not barge");
    assert_eq!(replies[3], Value::Nil, "a try does not barge");
    assert_eq!(replies[4], Value::Int(0));
    assert_eq!(replies[5], held_by("c"));
    assert_eq!(code(&replies[6]), "NOTHELD");
    assert!(b.token() < c.token());

    // And within a transaction.
    let mut d = by.wait(&server, "k", "d");
    control.send_all(&[
        "MULTI",
        "RLOCK.RELEASE k c",
        "HGETALL k",
        "RLOCK.ACQUIRE k c 9",
        "EXEC",
    ]);
    let replies = control.read_many(5);
    let within = vec![Value::Int(0), held_by("d"), Value::Nil];
    assert_eq!(replies[4], Value::Array(within));
    d.token();
}

both_ways!(a_waiters_lease_counts_from_the_grant);
fn a_waiters_lease_counts_from_the_grant(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut b = by.with(&server, "k b 5000 BLOCK 0");
    eventually("b has waited for a while", || {
        control.info("k").oldest_wait_ms >= Some(300)
    });
    let before = now_ms();
    control.ask("RLOCK.RELEASE k a");
    let ends = control.ends("k");
    assert!(ends_from(before, 5000).contains(&ends), "{ends}");
    b.token();
}

both_ways!(block_0_waits_until_the_lock_is_free);
fn block_0_waits_until_the_lock_is_free(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut b = by.with(&server, "k b 1000 BLOCK 0");
    eventually("b has waited for a while", || {
        control.info("k").oldest_wait_ms >= Some(700)
    });
    b.still_waits();
    control.ask("RLOCK.RELEASE k a");
    b.token();
}

both_ways!(a_block_time_ends_with_null_and_not_before_it_is_over);
fn a_block_time_ends_with_null_and_not_before_it_is_over(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut waits: Vec<_> = (1..=20)
        .rev()
        .map(|n| {
            let ms = 25 * n;
            let start = Instant::now();
            let waiter = by.with(&server, &format!("k w{n} 1000 BLOCK {ms}"));
            (Duration::from_millis(ms), start, waiter)
        })
        .collect();
    while let Some((time, start, mut waiter)) = waits.pop() {
        assert_eq!(waiter.end(), Value::Nil);
        let waited = start.elapsed();
        assert!(waited >= time, "{waited:?} of {time:?}");
        assert!(waited < time + BOUND / 2, "{waited:?} of {time:?}");
        waiter.client.in_step();
    }
    assert_eq!(control.waiters("k"), 0);
    assert_eq!(control.info("k").oldest_wait_ms, None);
    control.ask("RLOCK.RELEASE k a");
    control.is_free("k");
}

#[test]
fn a_time_out_is_the_null_bulk_in_both_protocols() {
    let server = Server::start();
    server.raw().ask("RLOCK.ACQUIRE k a 100000");
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let mut reply = |request: &str, last: &[u8]| {
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(last) {
            let mut chunk = [0; 4096];
            let count = stream.read(&mut chunk).unwrap();
            assert_ne!(count, 0, "closed after {bytes:?}");
            bytes.extend(&chunk[..count]);
        }
        bytes
    };
    for request in [
        "RLOCK.ACQUIRE k b 9 BLOCK 20\r\n",
        "RLOCK.ACQUIRE k b 9\r\n",
    ] {
        assert_eq!(reply(request, b"\r\n"), b"$-1\r\n");
    }
    reply("HELLO 3\r\nECHO mark\r\n", b"mark\r\n");
    for request in [
        "RLOCK.ACQUIRE k b 9 BLOCK 20\r\n",
        "RLOCK.ACQUIRE k b 9\r\n",
    ] {
        assert_eq!(reply(request, b"\r\n"), b"_\r\n");
    }
}

both_ways!(a_queue_belongs_to_the_lock_of_its_database);
fn a_queue_belongs_to_the_lock_of_its_database(by: Way) {
    let server = Server::start();
    let mut controls: Vec<_> = (0..4)
        .map(|db| {
            let mut control = server.raw();
            control.ask(&format!("SELECT {db}"));
            control.token("RLOCK.ACQUIRE k a 100000");
            control
        })
        .collect();
    let mut waiters: Vec<_> = (0..4)
        .map(|db| {
            let mut client = server.raw();
            client.ask(&format!("SELECT {db}"));
            by.on(client, &format!("RLOCK.ACQUIRE k b{db} {LONG} BLOCK 0"))
        })
        .collect();
    for (n, db) in [2, 0, 3, 1].into_iter().enumerate() {
        // From a connection that is in another database.
        let select = format!("SELECT {db}");
        let free = ["MULTI", &select, "RLOCK.RELEASE k a", "SELECT 0", "EXEC"];
        let replies = controls[0].ask_all(&free);
        assert!(matches!(&replies[4], Value::Array(within) if within[1] == Value::Int(0)));
        waiters[db].token();
        assert_eq!(controls[db].hash("k"), format!("b{db}=1"));
        let waiting: i64 = controls.iter_mut().map(|c| c.waiters("k")).sum();
        assert_eq!(waiting, 3 - n as i64);
    }
}

both_ways!(an_owner_that_waits_twice_is_nested_at_its_grant);
fn an_owner_that_waits_twice_is_nested_at_its_grant(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut first = by.with(&server, "k b 20000 BLOCK 0");
    let mut other = by.wait(&server, "k", "c");
    let mut again = by.with(&server, "k b 60000 BLOCK 0");
    assert_eq!(control.waiters("k"), 3);

    let before = now_ms();
    control.ask("RLOCK.RELEASE k a");
    assert_eq!(control.hash("k"), "b=2");
    let granted = first.token();
    assert_eq!(again.token(), granted, "one token for the hold under way");
    let ends = control.ends("k");
    let longest = ends_from(before, 60_000);
    assert!(longest.contains(&ends), "the longer lease of the two");
    assert_eq!(control.waiters("k"), 1);

    assert_eq!(control.int("RLOCK.RELEASE k b"), 1);
    assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    other.token();
    for waiter in [&mut first, &mut again, &mut other] {
        waiter.client.in_step();
    }
}

both_ways!(an_owner_that_waits_and_acquires_elsewhere_nests_there_too);
fn an_owner_that_waits_and_acquires_elsewhere_nests_there_too(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut ahead = by.wait(&server, "k", "b");
    let mut holder_again = by.wait(&server, "k", "a");
    // The holder does not wait for itself.
    holder_again.token();
    assert_eq!(control.int("RLOCK.RELEASE k a ALL"), 0);
    ahead.token();
}

#[test]
fn requests_behind_a_blocked_one_are_answered_after_its_grant() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut client = server.raw();
    client.send_all(&[
        "RLOCK.ACQUIRE k b 100000 BLOCK 0",
        "PING",
        "RLOCK.ACQUIRE k b 100000",
        "RLOCK.RELEASE k b ALL",
        "RLOCK.ACQUIRE k c 100000 BLOCK 0",
        "HGETALL k",
    ]);
    control.has_waiters("k", 1);
    assert_eq!(client.read_within(Duration::from_millis(20)), None);
    control.ask("RLOCK.RELEASE k a");
    let granted = token(client.read());
    assert_eq!(client.read(), pong());
    assert_eq!(client.read(), Value::Int(granted));
    assert_eq!(client.read(), Value::Int(0));
    assert!(token(client.read()) > granted);
    assert_eq!(list(client.read()), [bulk("c"), bulk("1")]);
}

both_ways!(info_counts_those_who_wait_and_for_how_long);
fn info_counts_those_who_wait_and_for_how_long(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let free = control.info("k");
    assert_eq!((free.mode.as_str(), free.waiters), ("free", 0));
    assert_eq!((free.holders.len(), free.oldest_wait_ms), (0, None));

    let held = control.token("RLOCK.ACQUIRE k a 100000");
    assert_eq!(control.info("k").oldest_wait_ms, None);
    let start = Instant::now();
    let mut old = by.wait(&server, "k", "b");
    let came = Instant::now();
    let _young = by.wait(&server, "k", "c");
    eventually("they wait", || {
        control.info("k").oldest_wait_ms >= Some(100)
    });
    let least = came.elapsed().as_millis() as i64 - 1;
    let found = control.info("k");
    let most = start.elapsed().as_millis() as i64;
    assert_eq!(found.mode, "exclusive");
    assert_eq!(found.holds(), [("a", 1, Some(held))]);
    assert!(found.holders[0].remaining_ms <= Some(longest(LONG)));
    assert_eq!(found.waiters, 2);
    let oldest = found.oldest_wait_ms.unwrap();
    assert!(
        (least..=most).contains(&oldest),
        "{oldest}: {least}..{most}"
    );

    control.ask("RLOCK.RELEASE k a");
    old.token();
    let found = control.info("k");
    assert_eq!(found.waiters, 1);
    assert!(found.oldest_wait_ms <= Some(came.elapsed().as_millis() as i64));
}

both_ways!(many_wait_for_many_locks);
fn many_wait_for_many_locks(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    const LOCKS: usize = 100;
    let held: Vec<_> = (0..LOCKS)
        .map(|n| format!("RLOCK.ACQUIRE k{n} a 100000"))
        .collect();
    control.ask_all(&held).into_iter().for_each(|reply| {
        token(reply);
    });
    let mut waiters: Vec<_> = (0..LOCKS)
        .flat_map(|n| [(n, "b"), (n, "c")])
        .map(|(n, owner)| by.wait(&server, &format!("k{n}"), owner))
        .collect();
    let all_of = |owner: &str| -> Vec<_> {
        (0..LOCKS)
            .map(|n| format!("RLOCK.RELEASE k{n} {owner}"))
            .collect()
    };
    for owner in ["a", "b", "c"] {
        let replies = control.ask_all(&all_of(owner));
        assert!(replies.into_iter().all(|reply| int(reply) == 0));
    }
    for pair in waiters.chunks_mut(2) {
        let first = pair[0].token();
        assert!(pair[1].token() > first);
    }
    assert_eq!(control.int("DBSIZE"), 0);
}
