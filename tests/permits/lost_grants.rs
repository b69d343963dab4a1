//! A grant of permits whose client is gone before its reply is revoked, all of it.

use redis::Value;

use crate::support::{both_ways, int, Ask, Server, Way, LONG};

const ROUNDS: usize = 40;

both_ways!(a_grant_whose_client_was_killed_before_its_reply_goes_on);
fn a_grant_whose_client_was_killed_before_its_reply_goes_on(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..ROUNDS {
        let watch = if round % 3 == 0 { "" } else { "WATCHDOG" };
        control.take_permits("k", "stays", "LIMIT 5");
        control.take_permits("k", "a", "LIMIT 5 PERMITS 4");
        let mut lost = by.with(
            &server,
            &format!("k b {LONG} LIMIT 5 PERMITS 3 BLOCK 0 {watch}"),
        );
        let mut next = by.with(
            &server,
            &format!("k c {LONG} LIMIT 5 PERMITS 4 BLOCK 0 {watch}"),
        );
        let kill = format!("CLIENT KILL ID {}", lost.id);
        let requests = ["RLOCK.RELEASE k a PERMITS ALL", &kill];
        if round % 2 == 0 {
            control.ask_all(&requests);
        } else {
            control.ask_all(&["MULTI", requests[0], requests[1], "EXEC"]);
        }
        assert!(lost.client.is_closed());
        next.token();
        assert_eq!(
            control.permits("k"),
            "c=4 mode=permits 5 5 5 stays=1",
            "{round}"
        );
        let watched = if watch.is_empty() { 0 } else { 4 };
        assert_eq!(control.counter("rlock_watchdog_holds"), watched);
        assert_eq!(control.give_back("k", "c", 4), 0);
        assert_eq!(control.give_back("k", "stays", 1), 0);
        control.is_free("k");
    }
}

/// Of an owner that had some before, those stay.
#[test]
fn what_the_owner_had_before_it_keeps() {
    let server = Server::start();
    let mut control = server.raw();
    let mut mine = server.raw();
    for round in 0..ROUNDS {
        let watch = ["", "WATCHDOG"][round % 2];
        let line = format!("RLOCK.ACQUIRE k b {LONG} LIMIT 5 {watch}");
        mine.token(&line);
        control.take_permits("k", "a", "LIMIT 5 PERMITS 4");
        let mut lost = Way::Block.with(
            &server,
            &format!("k b {LONG} LIMIT 5 PERMITS 3 BLOCK 0 WATCHDOG"),
        );
        let kill = format!("CLIENT KILL ID {}", lost.id);
        let replies = control.ask_all(&["RLOCK.RELEASE k a PERMITS ALL", &kill]);
        assert_eq!(int(replies[1].clone()), 1);
        assert!(lost.client.is_closed());
        control.permits_become("k", "b=1 mode=permits 5 5 1");
        assert_eq!(mine.give_back("k", "b", 1), 0);
    }
}

#[test]
fn a_grant_that_was_unblocked_has_one_end() {
    let server = Server::start();
    let mut control = server.raw();
    for how in ["TIMEOUT", "ERROR"] {
        for _ in 0..ROUNDS / 2 {
            control.take_permits("k", "a", "LIMIT 5 PERMITS 5");
            let mut hit = Way::Block.permits(&server, "k", "b", "LIMIT 5 PERMITS 3");
            let mut next = Way::Block.permits(&server, "k", "c", "LIMIT 5 PERMITS 4");
            let unblock = format!("CLIENT UNBLOCK {} {how}", hit.id);
            control.ask_all(&["RLOCK.RELEASE k a PERMITS ALL", &unblock]);
            if let Value::Int(_) = hit.end() {
                next.still_waits();
                assert_eq!(control.give_back("k", "b", 3), 0);
            }
            next.token();
            assert_eq!(control.permits("k"), "c=4 mode=permits 5 5 4");
            assert_eq!(control.give_back("k", "c", 4), 0);
            hit.client.in_step();
        }
    }
    control.nothing_left("k");
}
