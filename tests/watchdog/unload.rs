//! The module stays loaded while somebody relies on it, and can be unloaded once
//! all is over.

use redis::Value;

use crate::support::ask::{list, map, text};
use crate::support::locks::{code, token, Say, Waiter};
use crate::support::look::{goes_free, waits, Bound};
use crate::support::{eventually, RawClient, Server};

#[track_caller]
fn path(client: &mut RawClient) -> String {
    let modules = list(client.say("MODULE LIST")).into_iter().map(map);
    let name = Value::BulkString(b"rlock".to_vec());
    let rlock = modules.into_iter().find(|module| module["name"] == name);
    text(rlock.expect("it is loaded")["path"].clone())
}

#[test]
fn after_watchdogs_waits_and_deadlocks_it_can_be_unloaded_and_loaded_again() {
    let server = Server::start();
    let mut control = server.raw();
    let path = path(&mut control);
    for _ in 0..3 {
        let held = Bound::new(&server, "k", "a");
        let mut lost = Bound::with(&server, "lost a 300");
        assert_eq!(code(&control.say("MODULE UNLOAD rlock")), "ERR");
        control.say("DEL lost");
        assert!(lost.is_closed());
        let mut reader = Bound::with(&server, "doc a 300 READ");
        let many = Bound::by(&server, "RLOCK.MACQUIRE 2 x y m 300 WATCHDOG");
        token(control.say("RLOCK.ACQUIRE other b 100000"));
        let crossing = waits(&server, "RLOCK.ACQUIRE other a 100000 BLOCK 0");
        let refused = control.say("RLOCK.ACQUIRE k b 100000 BLOCK 0");
        assert_eq!(code(&refused), "DEADLOCK");
        let mut next = Waiter::new(&server, "k", "c");

        held.client.close();
        next.token();
        reader.client.say("RLOCK.RELEASE doc a READ");
        many.client.close();
        crossing.client.close();
        goes_free(&mut control, "x");
        goes_free(&mut control, "y");
        control.say_all(&["RLOCK.RELEASE other b", "RLOCK.RELEASE k c"]);
        goes_free(&mut control, "k");
        goes_free(&mut control, "other");
        // A timer that was set runs out by itself.
        eventually("it is unloaded", || {
            control.say("MODULE UNLOAD rlock") == Value::Okay
        });

        // What it listened to comes to nobody now, closes of its holders too.
        reader.client.close();
        drop(next);
        control.say_all(&["SET x 1 PX 1", "DEL x", "SWAPDB 0 1", "FLUSHALL"]);
        control.say_all(&["CONFIG SET timeout 0", "PING"]);
        server.alive();
        assert_eq!(control.call(&["MODULE", "LOAD", &path]), Value::Okay);
    }
    server.alive();
}

#[test]
fn a_watchdog_hold_keeps_the_module_loaded() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    for _ in 0..20 {
        assert_eq!(code(&control.say("MODULE UNLOAD rlock")), "ERR");
    }
    // Without a lease there is no deadline, and still somebody to look after.
    control.say("PERSIST k");
    crate::support::locks::pass(crate::support::locks::now_ms() + 1000);
    assert_eq!(code(&control.say("MODULE UNLOAD rlock")), "ERR");
    held.is_open();
    held.client.close();
    eventually("it is unloaded", || {
        control.say("MODULE UNLOAD rlock") == Value::Okay
    });
    assert_eq!(control.say("EXISTS k"), Value::Int(0));
}
