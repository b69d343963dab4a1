//! Turns of those who subscribe that end in another way than by somebody's taking
//! the lock.

use redis::Value;

use super::turns::{Outsider, CHANNEL, LONG_TURN};
use crate::support::ask::{list, Ask};
use crate::support::look::{counter, mode, set};
use crate::support::{eventually, RawClient, Server};

#[test]
fn a_request_that_comes_as_a_turn_ends_is_granted_and_not_forgotten() {
    for request in [
        "RLOCK.ACQUIRE job z 60000 BLOCK 30000",
        "RLOCK.ACQUIRE job z 60000 BLOCK 30000 WATCHDOG",
        "RLOCK.MACQUIRE 2 job other z 60000 BLOCK 30000",
    ] {
        let server = Server::start();
        let mut client = server.raw();
        set(&mut client, LONG_TURN);
        client.int("RLOCK.ACQUIRE job alice 60000");
        let mut waiter = server.raw();
        waiter.send(&["RLOCK.ACQUIRE", "job", "w", "300", "BLOCK", "0"]);
        eventually("it waits", || {
            list(client.ask("RLOCK.WAITERS job")).len() == 1
        });
        let outsider = Outsider::new(&server);
        client.int("RLOCK.RELEASE job alice");
        assert!(matches!(waiter.read(), Value::Int(_)));
        drop(outsider);
        eventually("nobody listens", || {
            list(client.ask(&format!("PUBSUB NUMSUB {CHANNEL}")))[1] == Value::Int(0)
        });
        // The lease of the waiter ends while the server sleeps, and the request finds
        // the place of one who has gone.
        let asked: Vec<&str> = request.split(' ').collect();
        client.send_many(&[&["DEBUG", "SLEEP", "0.5"], asked.as_slice()]);
        assert_eq!(client.read(), Value::Okay);
        assert!(matches!(client.read(), Value::Int(_)), "{request}");
        assert_eq!(client.int("RLOCK.RELEASE job z"), 0, "{request}");
    }
}

#[test]
fn who_subscribes_and_was_refused_in_a_turn_hears_that_it_is_over() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, "rlock.redisson-turn 50");
    client.int("RLOCK.ACQUIRE job alice 60000");
    let mut outsider = Outsider::new(&server);
    client.int("RLOCK.RELEASE job alice");
    assert_eq!(outsider.woken(), "0");
    // It tries by a command, whose tries have no part in turns.
    if client.refused("RLOCK.ACQUIRE job bob 60000") {
        assert_eq!(outsider.woken(), "0");
        client.int("RLOCK.ACQUIRE job bob 60000");
    }
    assert_eq!(mode(&mut client, "job"), "exclusive");
}

/// How many grants come before the next turn begins.
#[track_caller]
fn grants_before_a_turn(client: &mut RawClient) -> usize {
    let before = counter(client, "rlock_redisson_turns");
    for grants in 1..=200 {
        // A turn that is under way is waited for.
        client.int("RLOCK.ACQUIRE job alice 60000 BLOCK 0");
        client.int("RLOCK.RELEASE job alice");
        if counter(client, "rlock_redisson_turns") > before {
            return grants;
        }
    }
    panic!("no turn");
}

#[test]
fn turns_that_nobody_uses_are_further_and_further_apart_until_one_is_used() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, "rlock.redisson-turn 1");
    let mut outsider = Outsider::new(&server);
    assert!(grants_before_a_turn(&mut client) <= 8);
    // Twice as many each time, 64 at most, of which the last eight may come sooner.
    for most in [16, 32, 64, 64] {
        let grants = grants_before_a_turn(&mut client);
        assert!((most - 8..=most).contains(&grants), "{grants} of {most}");
    }
    set(&mut client, LONG_TURN);
    grants_before_a_turn(&mut client);
    assert!(outsider.takes());
    // From then on it is theirs whenever nobody else waits.
    for used in 1..=3 {
        eventually("the turn was used", || {
            counter(&mut client, "rlock_redisson_turns_used") == used
        });
        client.int("RLOCK.RELEASE job uuid:1");
        assert_eq!(mode(&mut client, "job"), "reserved");
        assert!(outsider.takes());
    }
}
