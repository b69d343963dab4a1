//! The module stays loaded while somebody relies on it, and can be unloaded once
//! all is over.

use crate::support::{code, now_ms, pass, Ask, Bound, Server, Waiter};

#[test]
fn after_watchdogs_waits_and_deadlocks_it_can_be_unloaded_and_loaded_again() {
    let server = Server::start();
    let mut control = server.raw();
    let path = control.module_path();
    for _ in 0..3 {
        let held = Bound::new(&server, "k", "a");
        let mut lost = Bound::with(&server, "lost a 300");
        assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR");
        control.ask("DEL lost");
        assert!(lost.client.is_closed());
        let mut reader = Bound::with(&server, "doc a 300 READ");
        let many = Bound::by(&server, "RLOCK.MACQUIRE 2 x y m 300 WATCHDOG");
        control.token("RLOCK.ACQUIRE other b 100000");
        let crossing = Waiter::by(&server, "RLOCK.ACQUIRE other a 100000 BLOCK 0");
        let refused = control.ask("RLOCK.ACQUIRE k b 100000 BLOCK 0");
        assert_eq!(code(&refused), "DEADLOCK");
        let mut next = Waiter::new(&server, "k", "c");

        held.client.close();
        next.token();
        reader.client.ask("RLOCK.RELEASE doc a READ");
        many.client.close();
        crossing.client.close();
        control.goes_free("x");
        control.goes_free("y");
        control.ask_all(&["RLOCK.RELEASE other b", "RLOCK.RELEASE k c"]);
        control.goes_free("k");
        control.goes_free("other");
        // A timer that was set runs out by itself.
        control.unload_module();

        // What it listened to comes to nobody now, closes of its holders too.
        reader.client.close();
        drop(next);
        control.ask_all(&["SET x 1 PX 1", "DEL x", "SWAPDB 0 1", "FLUSHALL"]);
        control.ask_all(&["CONFIG SET timeout 0", "PING"]);
        server.alive();
        control.ok(&["MODULE", "LOAD", &path]);
    }
    server.alive();
}

#[test]
fn a_watchdog_hold_keeps_the_module_loaded() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    for _ in 0..20 {
        assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR");
    }
    // Without a lease there is no deadline, and still somebody to look after.
    control.ask("PERSIST k");
    pass(now_ms() + 1000);
    assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR");
    held.client.in_step();
    held.client.close();
    control.unload_module();
    assert_eq!(control.int("EXISTS k"), 0);
}
