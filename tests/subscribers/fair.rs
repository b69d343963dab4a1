//! Redisson's RFairLock: its waiters stand in a list of their own, and the first of
//! them is woken on a channel of its own.

use super::outsider::{crowd, Outsider, CHANNEL, LONG_TURN};
use crate::support::{now_ms, Ask, Listener, RawClient, Server};

/// Stands in the queue of RFairLock until this moment.
fn stands(client: &mut RawClient, owner: &str, until: i64) {
    client.int(&format!("RPUSH redisson_lock_queue:{{job}} {owner}"));
    client.int(&format!(
        "ZADD redisson_lock_timeout:{{job}} {until} {owner}"
    ));
}

fn of(owner: &str) -> String {
    format!("{CHANNEL}:{owner}")
}

#[test]
fn the_first_is_woken_whose_time_is_not_over() {
    let server = Server::start();
    let mut client = server.raw();
    let later = now_ms() + 1_000_000;
    stands(&mut client, "uuid:1", 1);
    stands(&mut client, "uuid:2", now_ms() - 1);
    stands(&mut client, "uuid:3", later);
    stands(&mut client, "uuid:4", later);
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    let message = |channel: String| (channel, "0".to_owned());
    for end in ["RLOCK.RELEASE job alice", "RLOCK.FORCE job"] {
        client.int("RLOCK.ACQUIRE job alice 60000");
        client.int(end);
        let both = [message(CHANNEL.to_owned()), message(of("uuid:3"))];
        assert_eq!(heard.messages(), both, "{end}");
    }
    // What Redisson keeps there is left to Redisson.
    assert_eq!(client.int("LLEN redisson_lock_queue:{job}"), 4);
    client.int("DEL redisson_lock_queue:{job}");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(heard.messages(), [message(CHANNEL.to_owned())]);
}

#[test]
fn what_is_no_queue_does_not_matter() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("SET redisson_lock_queue:{job} x");
    client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    client.int("DEL redisson_lock_queue:{job}");
    stands(&mut client, "uuid:1", now_ms() + 1_000_000);
    client.ok("SET redisson_lock_timeout:{job} x");
    client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    server.alive();
}

#[test]
fn they_have_their_yield_window_among_native_waiters() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(LONG_TURN);
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut crowd = crowd(&server, 2);
    stands(&mut client, "uuid:1", now_ms() + 1_000_000);
    let mut fair = Outsider::on(&server, "SUBSCRIBE", &of("uuid:1"));
    for owner in ["alice", "w0", "w1"] {
        client.int(&format!("RLOCK.RELEASE job {owner}"));
    }
    for waiter in &mut crowd {
        waiter.token();
    }
    assert_eq!(fair.woken(), "0");
    assert_eq!(client.mode("job"), "reserved");
    assert!(fair.takes());
    assert_eq!(client.mode("job"), "exclusive");
    assert_eq!(client.counter("rlock_redisson_yields_used"), 1);
}

#[test]
fn one_who_died_there_keeps_nobody_waiting() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(LONG_TURN);
    stands(&mut client, "uuid:1", now_ms() + 1_000_000);
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    // Nobody listens for it: no turn.
    client.int("RLOCK.ACQUIRE job alice 60000");
    assert_eq!(client.counter("rlock_redisson_yields"), 0);
}
