//! What is presumed follows what others do to its key, or is forgotten.

use super::{expires_nothing, late, loaded_after, plain, presumed, written};
use crate::support::{eventually, now_ms, pass, Ask, Listener, RawClient, Server};

fn server() -> Server {
    let lines = [plain("k", late()), written("rw", late())];
    let server = loaded_after(&[], &lines.concat());
    let mut control = server.raw();
    presumed(&mut control, 2);
    expires_nothing(&mut control);
    server
}

/// It is gone at this moment, with no other event than the server's own.
#[track_caller]
fn goes_silently(control: &mut RawClient, events: &mut Listener, key: &str, ends: i64) {
    pass(ends);
    let mut told = Vec::new();
    eventually("the lease ends", || {
        told.extend(events.events());
        told.iter()
            .any(|(event, of)| event == "expired" && of == key)
    });
    let late = now_ms() - ends;
    assert!(late < 1000, "{late} ms late");
    let of = |(event, _): &&(String, String)| event.starts_with("rlock.");
    assert_eq!(told.iter().find(of), None);
    presumed(control, 1);
}

#[test]
fn another_ttl() {
    let server = server();
    let mut control = server.raw();
    let mut events = Listener::keyspace(&server, 0);
    let ends = now_ms() + 200;
    control.int(&format!("PEXPIREAT k {ends}"));
    goes_silently(&mut control, &mut events, "k", ends);
    // Later, and then without one.
    control.int(&format!("PEXPIRE rw {}", 2 * super::LATE));
    presumed(&mut control, 1);
    control.int("PERSIST rw");
    presumed(&mut control, 0);
    assert_eq!(control.int("EXISTS rw"), 1);
}

#[test]
fn another_name() {
    let server = server();
    let mut control = server.raw();
    let mut told = server.raw();
    told.ask("SUBSCRIBE redisson_lock__channel:{new}");
    control.ok("RENAME k new");
    presumed(&mut control, 2);
    let mut events = Listener::keyspace(&server, 0);
    let ends = now_ms() + 200;
    control.int(&format!("PEXPIREAT new {ends}"));
    goes_silently(&mut control, &mut events, "new", ends);
    let parts: Vec<String> = redis::from_redis_value(told.read()).expect("a message");
    assert_eq!(parts[2], "0");
}

#[test]
fn another_database() {
    let server = server();
    let mut control = server.raw();
    assert_eq!(control.int("MOVE k 5"), 1);
    presumed(&mut control, 2);
    control.ok("SWAPDB 5 6");
    presumed(&mut control, 2);
    let mut events = Listener::keyspace(&server, 6);
    let ends = now_ms() + 200;
    control.ok("SELECT 6");
    control.int(&format!("PEXPIREAT k {ends}"));
    goes_silently(&mut control, &mut events, "k", ends);
    control.ok("SELECT 0");
    control.ok("FLUSHDB");
    presumed(&mut control, 0);
}

#[test]
fn another_type_or_none() {
    let server = server();
    let mut control = server.raw();
    control.int("DEL k");
    presumed(&mut control, 1);
    control.ok("SET rw text PX 100000");
    presumed(&mut control, 0);
    assert_eq!(control.counter("rlock_expired"), 0);
    control.ok("FLUSHALL");
    server.unharmed();
}

/// Redisson's own holder gives its lock back, and the next one takes it.
#[test]
fn another_holder() {
    let server = server();
    let mut control = server.raw();
    control.int("DEL k");
    let ends = now_ms() + 300;
    control.succeed(&plain("k", ends));
    assert!(control.refused("RLOCK.ACQUIRE k b 1000"));
    assert_eq!(control.held_by("k"), "someone:1 exclusive 1");
    let mut waiter = crate::support::Waiter::new(&server, "k", "b");
    waiter.token();
    assert!(now_ms() - ends < 1000);
    assert_eq!(control.int("RLOCK.RELEASE rw someone:1 WRITE"), 0);
    presumed(&mut control, 0);
}
