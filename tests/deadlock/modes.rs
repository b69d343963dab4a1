//! Rings over readers, writers and upgrades.

use super::{block, ring};
use crate::support::{both_ways, Ask, Server, Way};

both_ways!(two_readers_that_want_to_write_what_the_other_reads);
fn two_readers_that_want_to_write_what_the_other_reads(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("y", "two");
    let mut writer = by.write(&server, "y", "one");
    let line = ring(control.ask("RLOCK.ACQUIRE x two 100000 WRITE BLOCK 0"));
    assert_eq!(
        line,
        "DEADLOCK two waits for x (one), one waits for y (two)"
    );
    assert_eq!(control.held_by("x"), "one read 1");
    control.ask("RLOCK.RELEASE y two READ");
    writer.token();
}

both_ways!(a_writer_and_a_plain_lock);
fn a_writer_and_a_plain_lock(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_write("doc", "one");
    control.take("plain", "two");
    let mut waiter = by.wait(&server, "plain", "one");
    let line = ring(control.ask("RLOCK.ACQUIRE doc two 100000 READ BLOCK 0"));
    let expected = "DEADLOCK two waits for doc (one), one waits for plain (two)";
    assert_eq!(line, expected);
    control.ask("RLOCK.RELEASE plain two");
    waiter.token();
}

both_ways!(the_second_of_two_upgrades_is_refused);
fn the_second_of_two_upgrades_is_refused(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    // A try is only told no.
    assert!(control.refused("RLOCK.ACQUIRE x two 1000 WRITE"));
    let mut first = by.write(&server, "x", "one");
    assert!(control.refused("RLOCK.ACQUIRE x two 1000 WRITE"));
    let line = ring(control.ask("RLOCK.ACQUIRE x two 100000 WRITE BLOCK 0"));
    assert_eq!(
        line,
        "DEADLOCK two waits for x (one), one waits for x (two)"
    );
    assert_eq!(control.held_by("x"), "one read 1, two read 1");
    assert_eq!(control.int("RLOCK.RELEASE x two READ"), 0);
    first.token();
    assert_eq!(control.held_by("x"), "one write 1, one read 1");
}

both_ways!(an_upgrade_ahead_of_a_waiting_writer_is_no_ring);
fn an_upgrade_ahead_of_a_waiting_writer_is_no_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    let mut writer = by.write(&server, "x", "w");
    let mut upgrade = by.write(&server, "x", "one");
    control.has_waiters("x", 2);
    control.ask("RLOCK.RELEASE x two READ");
    upgrade.token();
    control.has_waiters("x", 1);
    control.ask("RLOCK.RELEASE x one WRITE");
    control.ask("RLOCK.RELEASE x one READ");
    writer.token();
}

both_ways!(an_upgrade_may_close_a_ring_over_other_locks);
fn an_upgrade_may_close_a_ring_over_other_locks(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    control.take("y", "one");
    let mut waiter = by.wait(&server, "y", "two");
    let line = ring(control.ask("RLOCK.ACQUIRE x one 100000 WRITE BLOCK 0"));
    assert_eq!(
        line,
        "DEADLOCK one waits for x (two), two waits for y (one)"
    );
    assert_eq!(control.held_by("x"), "one read 1, two read 1");
    control.ask("RLOCK.RELEASE y one");
    waiter.token();
}

both_ways!(a_writer_waits_for_each_of_the_readers);
fn a_writer_waits_for_each_of_the_readers(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for n in 0..10 {
        control.take_read("x", &format!("r{n}"));
    }
    control.take("y", "w");
    let mut writer = by.write(&server, "x", "w");
    for n in [0, 4, 9] {
        let line = ring(control.ask(&block("y", &format!("r{n}"))));
        let expected = format!("DEADLOCK r{n} waits for y (w), w waits for x (r{n})");
        assert_eq!(line, expected);
    }
    // Somebody who reads nothing may wait for the writer.
    let mut other = by.wait(&server, "y", "z");
    for n in 0..10 {
        control.ask(&format!("RLOCK.RELEASE x r{n} READ"));
    }
    writer.token();
    control.ask("RLOCK.RELEASE y w");
    other.token();
}

both_ways!(a_reader_queued_behind_a_writer_waits_for_it);
fn a_reader_queued_behind_a_writer_waits_for_it(by: Way) {
    // R1 reads x, W waits to write it, R2 holds z and stands behind W to read x:
    // R1 that asked for z would wait for R2, which waits for W, which waits for R1.
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "r1");
    control.take("z", "r2");
    let mut writer = by.write(&server, "x", "w");
    let mut reader = by.read(&server, "x", "r2");
    control.has_waiters("x", 2);
    let line = ring(control.ask(&block("z", "r1")));
    let expected = "DEADLOCK r1 waits for z (r2), r2 waits for x (w), w waits for x (r1)";
    assert_eq!(line, expected);
    control.has_waiters("x", 2);
    control.ask("RLOCK.RELEASE x r1 READ");
    writer.token();
    control.ask("RLOCK.RELEASE x w WRITE");
    reader.token();
}

both_ways!(readers_do_not_wait_for_each_other);
fn readers_do_not_wait_for_each_other(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("y", "two");
    control.take_read("y", "one");
    control.take_read("x", "two");
    // Both behind one writer, in both orders.
    control.take_write("a", "w");
    control.take_write("b", "w");
    let mut all: Vec<_> = [("a", "one"), ("b", "two"), ("b", "one"), ("a", "two")]
        .into_iter()
        .map(|(key, owner)| by.read(&server, key, owner))
        .collect();
    control.has_waiters("a", 2);
    control.has_waiters("b", 2);
    control.ask("RLOCK.RELEASE a w WRITE");
    control.ask("RLOCK.RELEASE b w WRITE");
    for reader in &mut all {
        reader.token();
    }
}

both_ways!(reading_again_with_a_writer_waiting_is_nested_at_once);
fn reading_again_with_a_writer_waiting_is_nested_at_once(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    let mut writer = by.write(&server, "x", "w");
    control.token("RLOCK.ACQUIRE x one 100000 READ BLOCK 0");
    assert_eq!(control.held_by("x"), "one read 2");
    control.ask("RLOCK.RELEASE x one READ ALL");
    writer.token();
}

both_ways!(the_end_of_a_reader_takes_it_out_of_the_ring);
fn the_end_of_a_reader_takes_it_out_of_the_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    control.take("y", "w");
    let mut writer = by.write(&server, "x", "w");
    assert_eq!(control.code(&block("y", "one")), "DEADLOCK");
    control.ask("RLOCK.RELEASE x one READ");
    // It may wait for the writer now; who still reads may not.
    let mut waiter = by.wait(&server, "y", "one");
    assert_eq!(control.waiters("y"), 1);
    assert_eq!(control.code(&block("y", "two")), "DEADLOCK");
    control.ask("RLOCK.RELEASE x two READ");
    writer.token();
    control.ask("RLOCK.RELEASE y w");
    waiter.token();
}

both_ways!(a_reader_whose_lease_is_over_is_no_part_of_a_ring);
fn a_reader_whose_lease_is_over_is_no_part_of_a_ring(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    // What a client left behind that knows nothing of rlock: one of the two is dead.
    control.ask_all(&[
        "HSET x mode read dead 1 alive 1",
        "SET {x}:alive:rwlock_timeout:1 1 PX 100000",
        "PEXPIRE x 100000",
    ]);
    control.take("y", "w");
    let _writer = by.write(&server, "x", "w");
    let line = ring(control.ask(&block("y", "alive")));
    assert_eq!(
        line,
        "DEADLOCK alive waits for y (w), w waits for x (alive)"
    );
    let mut waiter = by.wait(&server, "y", "dead");
    assert_eq!(control.waiters("y"), 1);
    control.ask("RLOCK.RELEASE y w");
    waiter.token();
}

both_ways!(a_ring_over_locks_of_every_kind_is_one);
fn a_ring_over_locks_of_every_kind_is_one(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("plain", "one");
    control.take_read("read", "two");
    control.take_write("written", "three");
    control.take("many", "four");
    let mut waiters = [
        by.request(&server, "RLOCK.MACQUIRE 2 free read one 100000 BLOCK 0"),
        by.read(&server, "written", "two"),
        by.wait(&server, "many", "three"),
    ];
    control.has_waiters("read", 1);
    let line = ring(control.ask("RLOCK.ACQUIRE plain four 100000 WRITE BLOCK 0"));
    let expected = "DEADLOCK four waits for plain (one), one waits for read (two), \
                    two waits for written (three), three waits for many (four)";
    assert_eq!(line, expected);
    control.ask("RLOCK.RELEASE many four");
    waiters[2].token();
    control.ask("RLOCK.RELEASE written three WRITE");
    waiters[1].token();
    control.ask("RLOCK.RELEASE read two READ");
    waiters[0].token();
}

both_ways!(the_second_of_two_upgrades_is_refused_also_without_the_search);
fn the_second_of_two_upgrades_is_refused_also_without_the_search(by: Way) {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    let mut first = by.write(&server, "x", "one");
    assert_eq!(
        control.code("RLOCK.ACQUIRE x two 100000 WRITE BLOCK 0"),
        "DEADLOCK"
    );
    control.ask("RLOCK.RELEASE x two READ");
    first.token();
}
