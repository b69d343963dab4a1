//! Rings over readers, writers and upgrades.

use super::{block, ring};
use crate::support::{Ask, Server, Waiter};

#[test]
fn two_readers_that_want_to_write_what_the_other_reads() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("y", "two");
    let mut writer = Waiter::write(&server, "y", "one");
    let line = ring(control.ask("RLOCK.ACQUIRE x two 100000 WRITE BLOCK 0"));
    assert_eq!(
        line,
        "DEADLOCK two waits for x (one), one waits for y (two)"
    );
    assert_eq!(control.held_by("x"), "one read 1");
    control.ask("RLOCK.RELEASE y two READ");
    writer.token();
}

#[test]
fn a_writer_and_a_plain_lock() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_write("doc", "one");
    control.take("plain", "two");
    let mut waiter = Waiter::new(&server, "plain", "one");
    let line = ring(control.ask("RLOCK.ACQUIRE doc two 100000 READ BLOCK 0"));
    let expected = "DEADLOCK two waits for doc (one), one waits for plain (two)";
    assert_eq!(line, expected);
    control.ask("RLOCK.RELEASE plain two");
    waiter.token();
}

#[test]
fn the_second_of_two_upgrades_is_refused() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    // A try is only told no.
    assert!(control.refused("RLOCK.ACQUIRE x two 1000 WRITE"));
    let mut first = Waiter::write(&server, "x", "one");
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

#[test]
fn an_upgrade_ahead_of_a_waiting_writer_is_no_ring() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    let mut writer = Waiter::write(&server, "x", "w");
    let mut upgrade = Waiter::write(&server, "x", "one");
    control.has_waiters("x", 2);
    control.ask("RLOCK.RELEASE x two READ");
    upgrade.token();
    control.has_waiters("x", 1);
    control.ask("RLOCK.RELEASE x one WRITE");
    control.ask("RLOCK.RELEASE x one READ");
    writer.token();
}

#[test]
fn an_upgrade_may_close_a_ring_over_other_locks() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    control.take("y", "one");
    let mut waiter = Waiter::new(&server, "y", "two");
    let line = ring(control.ask("RLOCK.ACQUIRE x one 100000 WRITE BLOCK 0"));
    assert_eq!(
        line,
        "DEADLOCK one waits for x (two), two waits for y (one)"
    );
    assert_eq!(control.held_by("x"), "one read 1, two read 1");
    control.ask("RLOCK.RELEASE y one");
    waiter.token();
}

#[test]
fn a_writer_waits_for_each_of_the_readers() {
    let server = Server::start();
    let mut control = server.raw();
    for n in 0..10 {
        control.take_read("x", &format!("r{n}"));
    }
    control.take("y", "w");
    let mut writer = Waiter::write(&server, "x", "w");
    for n in [0, 4, 9] {
        let line = ring(control.ask(&block("y", &format!("r{n}"))));
        let expected = format!("DEADLOCK r{n} waits for y (w), w waits for x (r{n})");
        assert_eq!(line, expected);
    }
    // Somebody who reads nothing may wait for the writer.
    let mut other = Waiter::new(&server, "y", "z");
    for n in 0..10 {
        control.ask(&format!("RLOCK.RELEASE x r{n} READ"));
    }
    writer.token();
    control.ask("RLOCK.RELEASE y w");
    other.token();
}

#[test]
fn a_reader_queued_behind_a_writer_waits_for_it() {
    // R1 reads x, W waits to write it, R2 holds z and stands behind W to read x:
    // R1 that asked for z would wait for R2, which waits for W, which waits for R1.
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "r1");
    control.take("z", "r2");
    let mut writer = Waiter::write(&server, "x", "w");
    let mut reader = Waiter::read(&server, "x", "r2");
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

#[test]
fn readers_do_not_wait_for_each_other() {
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
        .map(|(key, owner)| Waiter::read(&server, key, owner))
        .collect();
    control.has_waiters("a", 2);
    control.has_waiters("b", 2);
    control.ask("RLOCK.RELEASE a w WRITE");
    control.ask("RLOCK.RELEASE b w WRITE");
    for reader in &mut all {
        reader.token();
    }
}

#[test]
fn reading_again_with_a_writer_waiting_is_nested_at_once() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    let mut writer = Waiter::write(&server, "x", "w");
    control.token("RLOCK.ACQUIRE x one 100000 READ BLOCK 0");
    assert_eq!(control.held_by("x"), "one read 2");
    control.ask("RLOCK.RELEASE x one READ ALL");
    writer.token();
}

#[test]
fn the_end_of_a_reader_takes_it_out_of_the_ring() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    control.take("y", "w");
    let mut writer = Waiter::write(&server, "x", "w");
    assert_eq!(control.code(&block("y", "one")), "DEADLOCK");
    control.ask("RLOCK.RELEASE x one READ");
    // It may wait for the writer now; who still reads may not.
    let mut waiter = Waiter::new(&server, "y", "one");
    assert_eq!(control.waiters("y"), 1);
    assert_eq!(control.code(&block("y", "two")), "DEADLOCK");
    control.ask("RLOCK.RELEASE x two READ");
    writer.token();
    control.ask("RLOCK.RELEASE y w");
    waiter.token();
}

#[test]
fn a_reader_whose_lease_is_over_is_no_part_of_a_ring() {
    let server = Server::start();
    let mut control = server.raw();
    // What a client left behind that knows nothing of rlock: one of the two is dead.
    control.ask_all(&[
        "HSET x mode read dead 1 alive 1",
        "SET {x}:alive:rwlock_timeout:1 1 PX 100000",
        "PEXPIRE x 100000",
    ]);
    control.take("y", "w");
    let _writer = Waiter::write(&server, "x", "w");
    let line = ring(control.ask(&block("y", "alive")));
    assert_eq!(
        line,
        "DEADLOCK alive waits for y (w), w waits for x (alive)"
    );
    let mut waiter = Waiter::new(&server, "y", "dead");
    assert_eq!(control.waiters("y"), 1);
    control.ask("RLOCK.RELEASE y w");
    waiter.token();
}

#[test]
fn a_ring_over_locks_of_every_kind_is_one() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("plain", "one");
    control.take_read("read", "two");
    control.take_write("written", "three");
    control.take("many", "four");
    let mut waiters = [
        Waiter::by(&server, "RLOCK.MACQUIRE 2 free read one 100000 BLOCK 0"),
        Waiter::read(&server, "written", "two"),
        Waiter::new(&server, "many", "three"),
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

#[test]
fn the_second_of_two_upgrades_is_refused_also_without_the_search() {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    control.take_read("x", "one");
    control.take_read("x", "two");
    let mut first = Waiter::write(&server, "x", "one");
    assert_eq!(
        control.code("RLOCK.ACQUIRE x two 100000 WRITE BLOCK 0"),
        "DEADLOCK"
    );
    control.ask("RLOCK.RELEASE x two READ");
    first.token();
}
