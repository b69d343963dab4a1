//! What load took is given back when what it was for has ended.

use std::time::Duration;

use crate::support::{poll, Ask, RawClient, Server, Session, Waiter, Way, LONG};

const MANY: usize = 100_000;

/// What may stay, bytes: the server's own ups and downs, and a little room in tables.
const MAY_STAY: i64 = 2_000_000;

/// By when: the server makes its own tables smaller bit by bit.
const GIVEN_BACK: Duration = Duration::from_secs(60);

/// As a new connection sees it, which has no large buffers.
#[track_caller]
fn used(server: &Server) -> i64 {
    let used = server.info_field("memory", "used_memory").expect("a line");
    used.parse().expect("bytes")
}

/// A server, and what it uses before any lock but one that made it ready.
#[track_caller]
fn server() -> (Server, i64) {
    let server = Server::start();
    let mut client = server.raw();
    client.take("first", "a");
    client.release("first", "a");
    client.close();
    let before = used(&server);
    (server, before)
}

/// Memory is what it was, as soon as the server has had time for it.
#[track_caller]
fn is_given_back(server: &Server, before: i64) {
    let peak = server.info_field("memory", "used_memory_peak");
    let mut now = 0;
    let given_back = poll(GIVEN_BACK, || {
        now = used(server);
        (now <= before + MAY_STAY).then_some(())
    });
    println!("before {before}, at most {peak:?}, now {now}");
    assert!(given_back.is_some(), "{} bytes stay", now - before);
}

/// Asks for so many things in a few large writes.
#[track_caller]
fn all(client: &mut RawClient, count: usize, request: impl Fn(usize) -> String) {
    for from in (0..count).step_by(2000) {
        let some: Vec<String> = (from..count.min(from + 2000)).map(&request).collect();
        client.succeed(&some);
    }
}

/// Permits, for what is known of their holders is more than of anybody else, and any change
/// of their keys is heard.
#[test]
fn of_very_many_locks_that_are_unlinked() {
    let (server, before) = server();
    let mut client = server.raw();
    let take = |n| format!("RLOCK.ACQUIRE lock:{n} owner {LONG}000 LIMIT 5");
    all(&mut client, MANY, take);
    let unlink = |n: usize| {
        let names = (n * 100..(n + 1) * 100).map(|n| format!("lock:{n}"));
        format!("UNLINK {}", names.collect::<Vec<_>>().join(" "))
    };
    all(&mut client, MANY / 100, unlink);
    client.close();
    is_given_back(&server, before);
}

/// One connection of very many queued waiters, which holds as often with WATCHDOG.
#[track_caller]
fn session(server: &Server, name: &str, words: &str) -> Session {
    let mut session = Session::new(server);
    let told = |n: usize| format!("NOTIFY {} {n}", session.channel);
    let (waits, holds) = (
        |n| {
            format!(
                "RLOCK.ACQUIRE plain:{n} {name} {LONG} QUEUE 0 {words} {}",
                told(n)
            )
        },
        |n| {
            format!(
                "RLOCK.ACQUIRE {name}:{n} {name} {LONG} WATCHDOG {}",
                told(n + MANY)
            )
        },
    );
    all(&mut session.client, 5000, waits);
    all(&mut session.client, 5000, holds);
    session
}

#[test]
fn of_a_very_long_name() {
    let (server, before) = server();
    let mut client = server.raw();
    let name = "n".repeat(20_000_000);
    client.take(&name, "a");
    client.release(&name, "a");
    client.close();
    is_given_back(&server, before);
}

#[test]
fn of_a_mixed_load_when_all_is_flushed() {
    let (server, before) = server();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.keep-place 1000");
    all(&mut client, 20_000, |n| {
        format!("RLOCK.ACQUIRE plain:{n} a {LONG}")
    });
    all(&mut client, 20_000, |n| {
        format!("RLOCK.ACQUIRE page:{} r{n} {LONG} READ", n / 4)
    });
    all(&mut client, 5000, |n| {
        format!("RLOCK.ACQUIRE book:{n} w {LONG} WRITE")
    });
    all(&mut client, 20_000, |n| {
        format!("RLOCK.ACQUIRE gpu:{} p{n} {LONG} LIMIT 8 PERMITS 2", n / 4)
    });
    // The places of these are kept for a while.
    let closes = session(&server, "closes", "ONCE");
    let stays = session(&server, "stays", "");
    let blocked: Vec<Waiter> = (0..100)
        .map(|n| Way::Block.wait(&server, &format!("plain:{n}"), "blocked"))
        .collect();
    closes.client.close();
    all(&mut client, 1000, |n| format!("RLOCK.RELEASE plain:{n} a"));
    client.ok("FLUSHALL");
    client.close();
    for waiter in blocked {
        waiter.client.close();
    }
    stays.client.close();
    let mut client = server.raw();
    client.ok("FLUSHALL");
    client.close();
    is_given_back(&server, before);
}

/// The holds of one connection that stays open.
#[test]
fn of_very_many_holds_of_a_session_that_goes_on() {
    let (server, before) = server();
    let mut session = Session::new(&server);
    let channel = session.channel.clone();
    let client = &mut session.client;
    all(client, MANY, |n| {
        format!("RLOCK.ACQUIRE lock:{n} owner {LONG}000 WATCHDOG NOTIFY {channel} {n}")
    });
    all(client, MANY, |n| format!("RLOCK.RELEASE lock:{n} owner"));
    is_given_back(&server, before);
    session.hold("lock", "owner", "WATCHDOG", "again");
}
