//! Requests that stood behind another one that was blocked, and that run when it is
//! unblocked: by then Redis 7.0 has computed how long it will sleep. Here its cron runs
//! once a second, and nothing else wakes it.

use std::time::{Duration, Instant};

use redis::Value;

use crate::support::{eventually, token, Ask, RawClient, Server};

/// So many ms after the last waiter and the last hold the module has nothing to do.
const IDLE_MS: u64 = 2400;

/// Far more than it needs, and far from the second that it must not take.
const SOON: Duration = Duration::from_millis(500);

fn start() -> Server {
    Server::start_with(&["--hz", "1", "--dynamic-hz", "no"])
}

/// Asserts that what a round measures comes soon, at three moments of the cron's second. A round
/// that took long is run again at the same moment: what waits for the cron is late each time, what a
/// busy machine keeps back is not.
#[track_caller]
fn soon_at_three_moments(mut round: impl FnMut() -> Duration) {
    let began = Instant::now();
    let mut run_at = |moment: u64| {
        let since = began.elapsed().as_millis() as u64 + IDLE_MS;
        let due = since.next_multiple_of(1000) + 333 * moment;
        std::thread::sleep(Duration::from_millis(due).saturating_sub(began.elapsed()));
        round()
    };
    for moment in 0..3 {
        let took = (0..4).map(|_| run_at(moment)).find(|took| *took < SOON);
        assert!(took.is_some(), "it took {SOON:?} or more four times");
    }
}

/// A client blocked by BLPOP, with a request behind that.
fn behind_a_pop(server: &Server, list: &str, request: &str) -> RawClient {
    let mut control = server.raw();
    let mut client = server.raw();
    let id = client.client_id();
    client.send_all(&[format!("BLPOP {list} 0").as_str(), request]);
    eventually("it is blocked", || {
        let line = control.text(&format!("CLIENT LIST ID {id}"));
        line.contains("cmd=blpop") && line.contains("flags=b")
    });
    client
}

/// Reads what BLPOP gave, then the other reply, and how long that took.
#[track_caller]
fn second_reply(client: &mut RawClient, since: Instant) -> (Value, Duration) {
    assert!(matches!(client.read(), Value::Array(_)));
    let reply = client.read();
    (reply, since.elapsed())
}

#[test]
fn who_waits_there_is_granted_at_once() {
    let server = start();
    let mut control = server.raw();
    soon_at_three_moments(|| {
        control.succeed(&["HSET k b 1", "PEXPIRE k 3600000"]);
        let mut a = behind_a_pop(&server, "la", "RLOCK.ACQUIRE k a 1000 BLOCK 0");
        let mut b = behind_a_pop(&server, "lb", "RLOCK.RELEASE k b");
        let since = Instant::now();
        control.ask_all(&["MULTI", "RPUSH la 1", "RPUSH lb 1", "EXEC"]);
        let (granted, took) = second_reply(&mut a, since);
        token(granted);
        assert_eq!(second_reply(&mut b, since).0, Value::Int(0));
        control.ask("RLOCK.RELEASE k a");
        took
    });
}

#[test]
fn a_wait_that_begins_there_ends_in_time() {
    let server = start();
    let mut control = server.raw();
    control.succeed(&["HSET k b 1", "PEXPIRE k 3600000"]);
    soon_at_three_moments(|| {
        let mut a = behind_a_pop(&server, "la", "RLOCK.ACQUIRE k a 1000 BLOCK 20");
        let since = Instant::now();
        control.ask("RPUSH la 1");
        let (reply, took) = second_reply(&mut a, since);
        assert_eq!(reply, Value::Nil);
        took
    });
}

#[test]
fn a_lease_that_begins_there_ends_in_time() {
    let server = start();
    let mut control = server.raw();
    soon_at_three_moments(|| {
        let mut a = behind_a_pop(&server, "la", "RLOCK.ACQUIRE k a 20");
        let mut b = behind_a_pop(&server, "la", "RLOCK.ACQUIRE k b 1000 BLOCK 0");
        let since = Instant::now();
        control.ask("RPUSH la 1 2");
        token(second_reply(&mut a, since).0);
        let (granted, took) = second_reply(&mut b, since);
        token(granted);
        control.ask("RLOCK.RELEASE k b");
        took
    });
}
