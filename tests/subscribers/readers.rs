//! Readers behind the place of those who wait by subscription, which counts as a writer.

use super::outsider::{Outsider, LONG_TURN};
use crate::support::{eventually, Ask, Server, Waiter};

const CHANNEL: &str = "redisson_rwlock:{job}";

#[test]
fn readers_are_let_in_again_when_no_writer_of_redissons_waits_any_more() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok(LONG_TURN);
    client.int("RLOCK.ACQUIRE job r0 60000 READ");
    let outsider = Outsider::on(&server, "SUBSCRIBE", CHANNEL);
    // Who joins finds out that somebody subscribes; the next stand behind that one.
    client.int("RLOCK.ACQUIRE job r1 60000 READ");
    assert!(client.refused("RLOCK.ACQUIRE job r2 60000 READ"));
    let mut waiter = Waiter::with(&server, "job r3 60000 READ BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    drop(outsider);
    waiter.token();
    client.int("RLOCK.ACQUIRE job r2 60000 READ");
    // It need not be one that waits who is kept out.
    let outsider = Outsider::on(&server, "SUBSCRIBE", CHANNEL);
    let mut joined = 4;
    while !client.refused(&format!("RLOCK.ACQUIRE job r{joined} 60000 READ")) {
        joined += 1;
        assert!(joined < 20, "readers overtake for ever");
    }
    drop(outsider);
    eventually("a try", || {
        !client.refused("RLOCK.ACQUIRE job last 60000 READ")
    });
}

/// The one who reads waits for a lock of the one who is to stand behind the place: with
/// nobody else in it, that would be no cycle.
#[test]
fn a_place_closes_no_cycle_of_others() {
    for reader_first in [true, false] {
        let server = Server::start();
        let mut client = server.raw();
        client.ok(LONG_TURN);
        client.int("RLOCK.ACQUIRE job h 60000 READ");
        client.int("RLOCK.ACQUIRE other p 60000");
        let mut outsider = Outsider::on(&server, "SUBSCRIBE", CHANNEL);
        client.int("RLOCK.ACQUIRE job x 60000 READ");
        client.int("RLOCK.RELEASE job x READ");
        assert!(client.refused("RLOCK.ACQUIRE job x 60000 READ"));
        let read = "RLOCK.ACQUIRE job p 60000 READ BLOCK 0";
        let take = "RLOCK.ACQUIRE other h 60000 BLOCK 0";
        let (mut p, mut h);
        if reader_first {
            p = Waiter::by(&server, read);
            assert_eq!(client.waiters("job"), 1);
            h = Waiter::by(&server, take);
            assert_eq!(client.waiters("other"), 1);
        } else {
            h = Waiter::by(&server, take);
            assert_eq!(client.waiters("other"), 1);
            p = Waiter::by(&server, read);
        }
        p.token();
        client.int("RLOCK.RELEASE other p");
        h.token();
        // The place is where it was.
        assert!(client.refused("RLOCK.ACQUIRE job x 60000 READ"));
        client.int("RLOCK.RELEASE job p READ");
        client.int("RLOCK.RELEASE job h READ");
        assert_eq!(outsider.woken(), "1");
        assert!(outsider.takes());
    }
}
