//! Turns of those who subscribe that end in another way than by somebody's taking
//! the lock.

use redis::Value;

use crate::ask::{list, Ask};
use crate::look::{mode, set};
use crate::support::{eventually, Server};
use crate::turns::{Outsider, CHANNEL, LONG_TURN};

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
