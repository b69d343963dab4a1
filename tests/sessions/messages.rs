//! What a session is told of its waits, word for word.

use redis::Value;

use crate::support::{queued, token, Ask, Server, Session, LONG};

#[test]
fn a_lock_that_is_free_is_granted_at_once_without_a_message() {
    let server = Server::start();
    let mut session = Session::new(&server);
    let token = session.hold("k", "a", "QUEUE 0", "t");
    assert_eq!(server.raw().known_token("k", "a", "exclusive"), Some(token));
    session.is_quiet();
}

#[test]
fn a_grant_is_notified_with_its_token() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    session.queue("k", "a", "t1");
    session.is_quiet();
    assert_eq!(control.waiters("k"), 1);
    control.release("k", "x");
    let token = control.known_token("k", "a", "exclusive").expect("held");
    assert_eq!(session.next(), format!("granted t1 {token}"));
    session.is_quiet();
}

#[test]
fn the_end_of_the_time_is_notified_and_not_before_it_is_over() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    for ms in [1, 40, 150] {
        let start = std::time::Instant::now();
        let reply = session.ask(&format!("RLOCK.ACQUIRE k a 1000 QUEUE {ms}"), "t");
        assert_eq!(reply, queued());
        assert_eq!(session.next(), "timeout t");
        assert!(start.elapsed().as_millis() >= ms, "{:?}", start.elapsed());
    }
    assert_eq!(control.waiters("k"), 0);
    session.is_quiet();
}

#[test]
fn a_mode_that_does_not_mix_with_what_its_owner_got_is_notified_as_an_error() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    session.queue_by(&format!("RLOCK.ACQUIRE k a {LONG} READ"), "reads");
    session.queue("k", "a", "plain");
    control.release("k", "x");
    session.granted("reads");
    let told = "error plain WRONGMODE owner 'a' holds 'k' for READ, which does not mix with a \
                plain lock: release it first, or use another name";
    assert_eq!(session.next(), told);
    session.is_quiet();
}

#[test]
fn a_ring_that_comes_about_while_it_waits_is_notified_as_an_error() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("x", "q");
    control.take("y", "w");
    control.take("source", "p");
    session.queue("y", "p", "p1");
    session.queue("x", "w", "w1");
    // x becomes p's by no request of p's.
    control.ok("RENAME source x");
    let told = session.next();
    assert!(told.starts_with("error p1 DEADLOCK "), "{told}");
    assert!(told.contains("p waits for y (w)"), "{told}");
    control.release("x", "p");
    session.granted("w1");
}

#[test]
fn the_request_that_closes_a_ring_is_refused_by_its_reply() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("x", "a");
    control.take("y", "b");
    session.queue("y", "a", "a1");
    let refused = session.ask(&format!("RLOCK.ACQUIRE x b {LONG} QUEUE 0"), "b1");
    let line = crate::support::error(refused);
    assert!(line.starts_with("DEADLOCK "), "{line}");
    // Its tag is free again.
    assert_eq!(
        session.ask("RLOCK.ACQUIRE x c 1000 QUEUE 1", "b1"),
        queued()
    );
    assert_eq!(session.next(), "timeout b1");
    control.release("y", "b");
    session.granted("a1");
}

#[test]
fn many_waits_on_one_connection_are_each_notified_by_their_tag() {
    const WAITS: usize = 1000;
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let all = |line: fn(usize) -> String| -> Vec<String> { (0..WAITS).map(line).collect() };
    control.ask_all(&all(|n| format!("RLOCK.ACQUIRE k{n} x 100000")));
    let channel = session.channel.clone();
    let queue: Vec<String> = (0..WAITS)
        .map(|n| format!("RLOCK.ACQUIRE k{n} a 100000 QUEUE 0 NOTIFY {channel} t{n}"))
        .collect();
    let replies = session.client.ask_all(&queue);
    assert!(replies.into_iter().all(|reply| reply == queued()));
    assert_eq!(control.counter("rlock_queued"), WAITS as i64);
    let replies = control.ask_all(&all(|n| format!("RLOCK.RELEASE k{n} x")));
    assert!(replies.into_iter().all(|reply| reply == Value::Int(0)));
    for n in 0..WAITS {
        let told = session.granted(&format!("t{n}"));
        assert_eq!(
            control.known_token(&format!("k{n}"), "a", "exclusive"),
            Some(told)
        );
    }
    session.is_quiet();
    assert_eq!(control.counter("rlock_queued"), 0);
}

#[test]
fn many_keys_at_once_are_queued_for_and_notified_by_one_message() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("y", "x");
    session.queue_by(&format!("RLOCK.MACQUIRE 3 x y z a {LONG}"), "all");
    control.is_reserved("x");
    session.is_quiet();
    control.release("y", "x");
    let token = session.granted("all");
    for key in ["x", "y", "z"] {
        assert_eq!(control.known_token(key, "a", "exclusive"), Some(token));
    }
    session.is_quiet();
    // And at once where all are free.
    control.ok("FLUSHALL");
    session.heard();
    token_of(session.ask(&format!("RLOCK.MACQUIRE 2 x z b {LONG} QUEUE 0"), "two"));
}

#[track_caller]
fn token_of(reply: Value) -> i64 {
    token(reply)
}

#[test]
fn an_owner_that_waits_in_both_ways_is_nested_at_its_grant() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    let mut blocked = crate::support::Waiter::new(&server, "k", "a");
    session.queue("k", "a", "t");
    let mut behind = crate::support::Waiter::new(&server, "k", "b");
    control.release("k", "x");
    let token = blocked.token();
    assert_eq!(session.granted("t"), token, "one hold under way, two holds");
    assert_eq!(control.hash("k"), "a=2");
    assert_eq!(control.int("RLOCK.RELEASE k a ALL"), 0);
    behind.token();
}
