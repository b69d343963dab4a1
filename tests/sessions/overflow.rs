//! A session that does not read: the server closes it when too much waits to be sent, and
//! what was granted to it then is not held.

use crate::support::{eventually, queued, Ask, Server, Session, Waiter, LONG};

const LOCKS: usize = 10_000;

#[test]
fn an_output_buffer_that_overflows_with_ten_thousand_grants_leaves_nobody_stuck() {
    let server = Server::start();
    let mut control = server.raw();
    control.limit_listeners(100_000);
    let take: Vec<String> = (0..LOCKS)
        .map(|n| format!("RLOCK.ACQUIRE k{n} x {LONG}"))
        .collect();
    control.succeed(&take);
    let mut session = Session::new(&server);
    let channel = session.channel.clone();
    for from in (0..LOCKS).step_by(500) {
        let lines: Vec<String> = (from..from + 500)
            .map(|n| format!("RLOCK.ACQUIRE k{n} a {LONG} QUEUE 0 NOTIFY {channel} t{n}"))
            .collect();
        let replies = session.client.ask_all(&lines);
        assert!(replies.into_iter().all(|reply| reply == queued()));
    }
    let mut behind: Vec<Waiter> = (0..LOCKS)
        .step_by(500)
        .map(|n| Waiter::new(&server, &format!("k{n}"), "b"))
        .collect();
    session.queue("k0", "late", "late");
    // All of them in one turn of the loop, so that nothing is sent between.
    let mut free = vec!["MULTI".to_owned()];
    free.extend((0..LOCKS).map(|n| format!("RLOCK.RELEASE k{n} x")));
    free.push("EXEC".to_owned());
    control.succeed(&free);
    assert!(session.client.is_closed());
    for waiter in &mut behind {
        waiter.token();
    }
    eventually("nobody else holds anything", || {
        control.int("DBSIZE") == behind.len() as i64
    });
    for n in (0..LOCKS).step_by(500) {
        assert_eq!(control.held_by(&format!("k{n}")), "b exclusive 1");
    }
    assert_eq!(control.counter("rlock_queued"), 0);
    assert_eq!(control.counter("rlock_waiting"), 0);
    let revoked = control.counter("rlock_grants_revoked");
    let granted = control.counter("rlock_granted_after_wait");
    // What was not written before it closed was never granted, or is revoked.
    assert_eq!(granted - revoked, behind.len() as i64);
    server.alive();
}
