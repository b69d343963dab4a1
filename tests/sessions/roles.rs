//! A master that becomes a replica: whoever is queued there is told, and may go on.

use crate::support::{pair, queued, Ask, Server, Session, Waiter, LONG};

const SENT_AWAY: &str = "UNBLOCKED the server is no master any more: ask the new one";

#[test]
fn ten_thousand_that_are_queued_are_all_notified_of_the_demotion() {
    const WAITS: usize = 10_000;
    let server = Server::start();
    let new = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    let channel = session.channel.clone();
    let lines: Vec<String> = (0..WAITS)
        .map(|n| format!("RLOCK.ACQUIRE k w{n} {LONG} QUEUE 0 NOTIFY {channel} t{n}"))
        .collect();
    let replies = session.client.ask_all(&lines);
    assert!(replies.into_iter().all(|reply| reply == queued()));
    control.ok(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    for n in 0..WAITS {
        assert_eq!(session.next(), format!("error t{n} {SENT_AWAY}"));
    }
    session.is_quiet();
    assert_eq!(control.counter("rlock_queued"), 0);
    // A replica takes no request; as a master again it does.
    let refused = session.ask("RLOCK.ACQUIRE k a 1000 QUEUE 0", "t");
    assert_eq!(crate::support::code(&refused), "READONLY");
    control.ok("REPLICAOF NO ONE");
    control.ok("FLUSHALL");
    session.hold("k", "a", "QUEUE 0", "t");
    server.alive();
}

#[test]
fn holds_and_waits_are_each_notified_once_by_their_tags() {
    let server = Server::start();
    let new = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    session.hold("held", "a", "", "held");
    session.hold("watched", "a", "WATCHDOG", "watched");
    session.queue("k", "a", "waits");
    session.queue_by(&format!("RLOCK.MACQUIRE 2 k free b {LONG}"), "many");
    let mut blocked = Waiter::new(&server, "k", "c");
    control.ok(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    assert_eq!(session.about("held"), "lost held demoted");
    assert_eq!(session.about("watched"), "lost watched demoted");
    for tag in ["waits", "many"] {
        assert_eq!(session.about(tag), format!("error {tag} {SENT_AWAY}"));
    }
    assert_eq!(crate::support::code(&blocked.end()), "UNBLOCKED");
    session.is_quiet();
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
}

#[test]
fn messages_are_not_replicated() {
    let (server, replica) = pair(&[]);
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let mut copy = replica.raw();
    copy.ask(&format!("SUBSCRIBE {}", session.channel));
    control.take("k", "x");
    session.queue("k", "a", "t");
    control.release("k", "x");
    session.granted("t");
    control.int("RLOCK.FORCE k");
    assert_eq!(session.next(), "lost t forced");
    // What is published by hand is, and comes after all that was before it.
    control.int(&format!("PUBLISH {} mark", session.channel));
    let heard = crate::support::list(copy.read());
    assert_eq!(heard[2], crate::support::bulk("mark"));
}
