//! Turns of those who subscribe that end in another way than by somebody's taking
//! the lock.

use redis::Value;

use super::outsider::{Outsider, CHANNEL, LONG_TURN};
use crate::support::{eventually, token, Ask, RawClient, Server, Waiter};

#[test]
fn a_request_that_comes_as_a_yield_ends_is_granted_and_not_forgotten() {
    for request in [
        "RLOCK.ACQUIRE job z 60000 BLOCK 30000",
        "RLOCK.ACQUIRE job z 60000 BLOCK 30000 WATCHDOG",
        "RLOCK.MACQUIRE 2 job other z 60000 BLOCK 30000",
    ] {
        let server = Server::start();
        let mut client = server.raw();
        client.ok(LONG_TURN);
        client.int("RLOCK.ACQUIRE job alice 60000");
        let mut waiter = Waiter::with(&server, "job w 300 BLOCK 0");
        assert_eq!(client.waiters("job"), 1);
        let outsider = Outsider::new(&server);
        client.int("RLOCK.RELEASE job alice");
        waiter.token();
        drop(outsider);
        eventually("nobody listens", || {
            client.list(&format!("PUBSUB NUMSUB {CHANNEL}"))[1] == Value::Int(0)
        });
        // The lease of the waiter ends while the server sleeps, and the request finds
        // the place of one who has gone.
        client.send_all(&["DEBUG SLEEP 0.5", request]);
        assert_eq!(client.read(), Value::Okay);
        token(client.read());
        assert_eq!(client.int("RLOCK.RELEASE job z"), 0, "{request}");
    }
}

#[test]
fn who_subscribes_and_was_refused_in_a_yield_window_is_woken_when_it_is_over() {
    let (_server, mut client, mut outsider) = Outsider::in_its_turn(50);
    assert_eq!(outsider.woken(), "0");
    // It tries by a command, whose tries have no part in turns.
    if client.refused("RLOCK.ACQUIRE job bob 60000") {
        assert_eq!(outsider.woken(), "0");
        client.int("RLOCK.ACQUIRE job bob 60000");
    }
    assert_eq!(client.mode("job"), "exclusive");
}

/// How many grants come before the next turn begins.
#[track_caller]
fn grants_before_a_yield(client: &mut RawClient) -> usize {
    let before = client.counter("rlock_redisson_yields");
    for grants in 1..=200 {
        // A turn that is under way is waited for.
        client.int("RLOCK.ACQUIRE job alice 60000 BLOCK 0");
        client.int("RLOCK.RELEASE job alice");
        if client.counter("rlock_redisson_yields") > before {
            return grants;
        }
    }
    panic!("no turn");
}

#[test]
fn yields_that_nobody_uses_are_further_and_further_apart_until_one_is_used() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("CONFIG SET rlock.redisson-yield 1");
    let mut outsider = Outsider::new(&server);
    assert!(grants_before_a_yield(&mut client) <= 8);
    // Twice as many each time, 64 at most, of which the last eight may come sooner.
    for most in [16, 32, 64, 64] {
        let grants = grants_before_a_yield(&mut client);
        assert!((most - 8..=most).contains(&grants), "{grants} of {most}");
    }
    client.ok(LONG_TURN);
    grants_before_a_yield(&mut client);
    assert!(outsider.takes());
    // From then on it is theirs whenever nobody else waits.
    for used in 1..=3 {
        eventually("the turn was used", || {
            client.counter("rlock_redisson_yields_used") == used
        });
        client.int("RLOCK.RELEASE job uuid:1");
        assert_eq!(client.mode("job"), "reserved");
        assert!(outsider.takes());
    }
}
