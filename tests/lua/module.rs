//! The function library and the module are two ways to the same locks: one can take over
//! from the other while locks are held.

use super::caller::Lua;
use crate::support::{Ask, Server, Waiter, Way};

#[test]
fn each_sees_what_the_other_holds() {
    let server = Server::start();
    let mut lua = Lua::library(&server);
    let mut native = server.raw();
    for mode in ["", "READ", "WRITE"] {
        let first = lua.int(&format!("acquire doc a 100000 {mode}"));
        assert!(native.refused("RLOCK.ACQUIRE doc b 1000 WRITE"));
        assert!(native.refused("RLOCK.ACQUIRE doc b 1000"));
        // The owner goes on where it comes from, and ends on the other side.
        let second = native.token(&format!("RLOCK.ACQUIRE doc a 200000 {mode}"));
        assert_eq!(second, first, "the module gave both");
        assert_eq!(lua.int(&format!("renew doc a 300000 {mode}")), 1);
        assert_eq!(lua.int(&format!("release doc a {mode}")), 1);
        assert_eq!(native.int(&format!("RLOCK.RELEASE doc a {mode}")), 0);
        native.nothing_left("doc");
        native.token(&format!("RLOCK.ACQUIRE doc a 100000 {mode}"));
        assert!(lua.refused("acquire doc b 1000 WRITE"));
        assert!(lua.refused("macquire 2 free doc b 1000"));
        assert_eq!(lua.info("doc").holders[0].owner, "a");
        assert_eq!(lua.int(&format!("release doc a {mode}")), 0);
        native.nothing_left("doc");
    }
    lua.int("acquire doc a 100000 READ");
    native.token("RLOCK.ACQUIRE doc b 200000 READ");
    assert_eq!(lua.int("release doc a READ"), 0);
    assert!(lua.refused("acquire doc a 1000 WRITE"));
    assert_eq!(lua.int("release doc b READ"), 0);
    native.nothing_left("doc");
}

#[test]
fn each_sees_the_permits_that_the_other_gave() {
    let server = Server::start();
    let mut lua = Lua::library(&server);
    let mut native = server.raw();
    lua.int("acquire gpu a 100000 LIMIT 3");
    native.token("RLOCK.ACQUIRE gpu b 100000 LIMIT 3 PERMITS 2");
    assert!(lua.refused("acquire gpu c 100000 LIMIT 3"));
    assert!(native.refused("RLOCK.ACQUIRE gpu c 100000 LIMIT 3"));
    assert_eq!(lua.int("limit gpu 4"), 3);
    native.token("RLOCK.ACQUIRE gpu a 100000 LIMIT 3");
    assert_eq!(native.held_by("gpu"), "a permits 2, b permits 2");
    assert_eq!(lua.info("gpu").held_by(), "a permits 2, b permits 2");
    assert_eq!(native.int("RLOCK.RENEW gpu a 200000 PERMITS"), 1);
    assert_eq!(lua.int("renew gpu b 200000 PERMITS"), 1);
    assert_eq!(native.int("RLOCK.RELEASE gpu b PERMITS"), 1);
    assert_eq!(lua.int("release gpu b PERMITS"), 0);
    let mut waiter = Way::Block.with(&server, "gpu w 100000 LIMIT 3 PERMITS 3 BLOCK 0");
    assert_eq!(lua.int("release gpu a PERMITS ALL"), 0);
    waiter.token();
    assert_eq!(lua.info("gpu").held_by(), "w permits 3");
    assert_eq!(lua.int("release gpu w PERMITS 3"), 0);
    native.nothing_left("gpu");
}

/// Clients of the library go on while others wait with the module's BLOCK.
#[test]
fn a_waiter_of_the_module_gets_what_the_library_leaves_free() {
    let server = Server::start();
    let mut lua = Lua::library(&server);
    let mut native = server.raw();
    lua.int("acquire job a 100000");
    let mut waiter = Waiter::new(&server, "job", "w");
    lua.int("release job a");
    waiter.token();
    assert!(lua.refused("acquire job a 1000"));
    assert_eq!(lua.int("release job w"), 0);

    lua.int("acquire doc a 100000 WRITE");
    let mut readers = ["r", "s"].map(|owner| Waiter::read(&server, "doc", owner));
    lua.int("release doc a WRITE");
    for reader in &mut readers {
        reader.token();
    }
    let mut writer = Waiter::write(&server, "doc", "w");
    lua.int("release doc r READ");
    lua.int("release doc s READ");
    writer.token();
    native.goes_to("doc", "w write 1");
}
