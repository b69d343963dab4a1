//! The end of a session's connection: its waits end, its watchdog holds too, and the next
//! have them. What it holds by a plain lease stays.

use crate::support::{each, now_ms, queued, Ask, Listener, Server, Session, Waiter, LONG};

#[derive(Clone, Copy, Debug)]
enum Close {
    Own,
    Reset,
    Kill,
    Quit,
}

#[test]
fn its_waits_end_and_its_watchdog_holds_and_the_next_have_them() {
    let ways = [Close::Own, Close::Reset, Close::Kill, Close::Quit];
    each(&ways, |way, server, client| {
        let mut session = Session::new(server);
        client.take("k", "x");
        session.hold("watched", "a", "WATCHDOG", "w");
        session.hold("leased", "a", "", "l");
        session.queue("k", "a", "t1");
        session.queue("watched", "b", "t2");
        session.queue_by(&format!("RLOCK.MACQUIRE 2 k free a {LONG}"), "t3");
        client.is_reserved("free");
        let mut behind = Waiter::new(server, "k", "c");
        let mut next = Waiter::new(server, "watched", "c");
        let mut reserved = Waiter::new(server, "free", "c");
        match way {
            Close::Own => session.client.close(),
            Close::Reset => session.client.reset(),
            Close::Kill => {
                assert_eq!(client.int(&format!("CLIENT KILL ID {}", session.id)), 1);
                assert!(session.client.is_closed());
            }
            Close::Quit => {
                session.client.send("QUIT");
                assert!(session.client.is_closed());
            }
        }
        next.token();
        reserved.token();
        client.has_waiters("k", 1);
        client.release("k", "x");
        behind.token();
        assert_eq!(client.held_by("leased"), "a exclusive 1");
        assert_eq!(client.counter("rlock_queued"), 0);
        assert_eq!(client.counter("rlock_waiting"), 0);
    });
}

#[test]
fn a_grant_whose_connection_is_killed_in_the_same_write_is_revoked() {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..50 {
        control.take("k", "x");
        let mut session = Session::new(&server);
        session.queue("k", "a", "t1");
        session.queue("k", "b", "t2");
        let mut last = Waiter::new(&server, "k", "last");
        let kill = format!("CLIENT KILL ID {}", session.id);
        control.succeed(&["RLOCK.RELEASE k x", &kill]);
        last.token();
        assert_eq!(control.hash("k"), "last=1", "round {round}");
        assert_eq!(control.int("RLOCK.RELEASE k last"), 0);
        control.is_free("k");
    }
    assert!(control.counter("rlock_grants_revoked") > 0);
    assert_eq!(control.counter("rlock_queued"), 0);
}

/// A client that does not read: the grant lies behind more than its socket takes. It stands for its
/// lease, for nobody can tell whether it was read; with WATCHDOG it ends with the connection.
#[test]
fn a_grant_that_nobody_reads_stands_for_its_lease_or_with_its_connection() {
    let server = Server::start();
    let mut control = server.raw();
    control.ok(&["SET", "large", &"x".repeat(4_000_000)]);
    let lease = 4000;
    for words in ["", "WATCHDOG"] {
        control.take("k", "x");
        let mut deaf = server.raw();
        let mut lines = vec!["GET large".to_owned(); 8];
        lines.push(format!("RLOCK.ACQUIRE k deaf {lease} BLOCK 0 {words}"));
        deaf.send_all(&lines);
        control.has_waiters("k", 1);
        let mut next = Waiter::new(&server, "k", "next");
        control.has_waiters("k", 2);
        let granted = now_ms();
        control.release("k", "x");
        assert_eq!(control.held_by("k"), "deaf exclusive 1");
        deaf.close();
        next.token();
        let lasted = now_ms() - granted;
        assert_eq!(lasted >= lease, words.is_empty(), "{words}: {lasted} ms");
        control.release("k", "next");
    }
}

#[test]
fn ten_thousand_waits_of_it_are_gone_and_never_granted() {
    const WAITS: i64 = 10_000;
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    let notify = session.notify("");
    let lines: Vec<String> = (0..WAITS)
        .map(|n| format!("RLOCK.ACQUIRE k w{n} 100000 QUEUE 0 {notify}t{n}"))
        .collect();
    let replies = session.client.ask_all(&lines);
    assert!(replies.into_iter().all(|reply| reply == queued()));
    assert_eq!(control.waiters("k"), WAITS);
    let mut last = Waiter::new(&server, "k", "last");
    let mut events = Listener::keyspace(&server, 0);
    session.client.close();
    // At once: those that are there still are passed over.
    control.release("k", "x");
    last.token();
    assert_eq!(control.hash("k"), "last=1");
    assert_eq!(events.count("rlock.acquired", "k"), 1);
    crate::support::eventually("none is left", || control.counter("rlock_queued") == 0);
    assert_eq!(control.waiters("k"), 0);
}
