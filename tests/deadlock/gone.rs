//! What others took away, or took themselves, holds nobody up: it is no part of a
//! ring, in whatever order rlock hears of it.

use super::{block, ring};
use crate::support::{both_ways, Ask, Server, Waiter, Way};

both_ways!(locks_that_went_together_are_no_part_of_a_ring);
fn locks_that_went_together_are_no_part_of_a_ring(by: Way) {
    // A script takes k0 for a, which waits for b's lock; and b waits for k0. But
    // that lock of b's has gone in the same step.
    let takes = "HSET k0 a 1";
    for way in [
        &[
            "MULTI",
            "DEL k0",
            takes,
            "PEXPIRE k0 100000",
            "DEL k1",
            "EXEC",
        ][..],
        &[
            "MULTI",
            "DEL k1",
            "DEL k0",
            takes,
            "PEXPIRE k0 100000",
            "EXEC",
        ],
        &["MULTI", "FLUSHALL", takes, "PEXPIRE k0 100000", "EXEC"],
        &["MULTI", "FLUSHDB", takes, "PEXPIRE k0 100000", "EXEC"],
    ] {
        println!("{way:?}");
        let server = Server::start();
        let mut control = server.raw();
        control.token("RLOCK.ACQUIRE k0 other 100000");
        control.token("RLOCK.ACQUIRE k1 b 100000");
        let mut a = by.wait(&server, "k1", "a");
        let mut b = by.wait(&server, "k0", "b");
        control.ask_all(way);
        a.token();
        assert_eq!(control.held_by("k1"), "a exclusive 1");
        control.has_waiters("k0", 1);
        control.ask("RLOCK.RELEASE k0 a");
        b.token();
        assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    }
}

both_ways!(a_lock_that_changed_hands_in_one_step_is_no_part_of_a_ring);
fn a_lock_that_changed_hands_in_one_step_is_no_part_of_a_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k0 a 100000");
    control.token("RLOCK.ACQUIRE k1 b 100000");
    let mut a = by.wait(&server, "k1", "a");
    // The key never goes, and no event that rlock listens to tells of it.
    control.ask_all(&["MULTI", "HSET k1 script 1", "HDEL k1 b", "EXEC"]);
    let mut b = by.wait(&server, "k0", "b");
    control.has_waiters("k0", 1);
    control.ask("RLOCK.RELEASE k1 script");
    a.token();
    control.ask("RLOCK.RELEASE k0 a");
    b.token();
}

/// A request in the database 1 that waits.
#[track_caller]
fn waits_in_one(by: Way, server: &Server, line: &str) -> Waiter {
    let mut client = server.raw();
    client.ask("SELECT 1");
    by.on(client, line)
}

both_ways!(a_ring_that_is_closed_right_behind_swapdb_is_refused);
fn a_ring_that_is_closed_right_behind_swapdb_is_refused(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for (db, key, owner) in [(1, "n", "a"), (0, "n", "y"), (2, "m", "c")] {
        control.ask(&format!("SELECT {db}"));
        control.take(key, owner);
    }
    let mut b = waits_in_one(by, &server, "RLOCK.MACQUIRE 2 j n b 100000 BLOCK 0");
    let mut c = waits_in_one(by, &server, "RLOCK.ACQUIRE j c 100000 BLOCK 0");
    // Nothing that came with the database has been looked at when the second one is run.
    let replies = control.ask_all(&["SWAPDB 0 1", &block("m", "b")]);
    let line = ring(replies[1].clone());
    assert_eq!(line, "DEADLOCK b waits for m (c), c waits for j (b)");
    control.ask("SELECT 1");
    assert_eq!(control.int("RLOCK.RELEASE n y"), 0);
    b.token();
    assert_eq!(control.int("RLOCK.RELEASE j b"), 0);
    c.token();
}

both_ways!(who_asks_right_behind_swapdb_leaves_nobody_standing);
fn who_asks_right_behind_swapdb_leaves_nobody_standing(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("SELECT 1");
    control.take("n", "a");
    let mut b = waits_in_one(by, &server, "RLOCK.MACQUIRE 2 j n b 100000 BLOCK 0");
    // Both are free there, and b is first in both queues.
    let tries = ["n", "j"].map(|key| format!("RLOCK.ACQUIRE {key} q 1000"));
    control.ask_all(&["SWAPDB 0 1", &tries[0], &tries[1]]);
    b.token();
}
