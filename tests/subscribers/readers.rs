//! Readers behind the place of those who wait by subscription, which counts as a writer.

use redis::Value;

use super::turns::{Outsider, LONG_TURN};
use crate::support::ask::{list, Ask};
use crate::support::look::set;
use crate::support::{eventually, RawClient, Server};

const CHANNEL: &str = "redisson_rwlock:{job}";

/// Sends a request that waits, and waits until it stands in the queue of a key.
fn waits(server: &Server, key: &str, request: &str) -> RawClient {
    let mut waiter = server.raw();
    waiter.send(&request.split(' ').collect::<Vec<_>>());
    let mut control = server.raw();
    eventually(request, || {
        list(control.ask(&format!("RLOCK.WAITERS {key}"))).len() == 1
    });
    waiter
}

#[test]
fn readers_are_let_in_again_when_no_writer_of_redissons_waits_any_more() {
    let server = Server::start();
    let mut client = server.raw();
    set(&mut client, LONG_TURN);
    client.int("RLOCK.ACQUIRE job r0 60000 READ");
    let outsider = Outsider::on(&server, "SUBSCRIBE", CHANNEL);
    // Who joins finds out that somebody subscribes; the next stand behind that one.
    client.int("RLOCK.ACQUIRE job r1 60000 READ");
    assert!(client.refused("RLOCK.ACQUIRE job r2 60000 READ"));
    let mut waiter = server.raw();
    waiter.send(&["RLOCK.ACQUIRE", "job", "r3", "60000", "READ", "BLOCK", "0"]);
    eventually("r3 waits", || {
        list(client.ask("RLOCK.WAITERS job")).len() == 1
    });
    drop(outsider);
    assert!(matches!(waiter.read(), Value::Int(_)));
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
/// nobody else in it, that would be no circle.
#[test]
fn a_place_closes_no_circle_of_others() {
    for reader_first in [true, false] {
        let server = Server::start();
        let mut client = server.raw();
        set(&mut client, LONG_TURN);
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
            p = waits(&server, "job", read);
            h = waits(&server, "other", take);
        } else {
            h = waits(&server, "other", take);
            p = server.raw();
            p.send(&read.split(' ').collect::<Vec<_>>());
        }
        assert!(matches!(p.read(), Value::Int(_)));
        client.int("RLOCK.RELEASE other p");
        assert!(matches!(h.read(), Value::Int(_)));
        // The place is where it was.
        assert!(client.refused("RLOCK.ACQUIRE job x 60000 READ"));
        client.int("RLOCK.RELEASE job p READ");
        client.int("RLOCK.RELEASE job h READ");
        assert_eq!(outsider.woken(), "1");
        assert!(outsider.takes());
    }
}
