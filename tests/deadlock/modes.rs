//! Rings over readers, writers and upgrades.

use redis::Value;

use super::rings::ring;
use crate::support::locks::{code, has_waiters, info, token, Say};
use crate::support::look::{held_by, waits};
use crate::support::{RawClient, Server};

#[track_caller]
fn take(client: &mut RawClient, key: &str, owner: &str, mode: &str) {
    token(client.say(&format!("RLOCK.ACQUIRE {key} {owner} 100000 {mode}")));
}

fn ask(key: &str, owner: &str, mode: &str) -> String {
    format!("RLOCK.ACQUIRE {key} {owner} 100000 {mode} BLOCK 0")
}

#[test]
fn two_readers_that_want_to_write_what_the_other_reads() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "y", "two", "READ");
    let mut writer = waits(&server, &ask("y", "one", "WRITE"));
    let line = ring(control.say(&ask("x", "two", "WRITE")));
    assert_eq!(
        line,
        "DEADLOCK two waits for x (one), one waits for y (two)"
    );
    assert_eq!(held_by(&mut control, "x"), "one read 1");
    control.say("RLOCK.RELEASE y two READ");
    writer.token();
}

#[test]
fn a_writer_and_a_plain_lock() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "doc", "one", "WRITE");
    take(&mut control, "plain", "two", "");
    let mut waiter = waits(&server, &ask("plain", "one", ""));
    let line = ring(control.say(&ask("doc", "two", "READ")));
    let expected = "DEADLOCK two waits for doc (one), one waits for plain (two)";
    assert_eq!(line, expected);
    control.say("RLOCK.RELEASE plain two");
    waiter.token();
}

#[test]
fn the_second_of_two_upgrades_is_refused() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "x", "two", "READ");
    // A try is only told no.
    assert_eq!(control.say("RLOCK.ACQUIRE x two 1000 WRITE"), Value::Nil);
    let mut first = waits(&server, &ask("x", "one", "WRITE"));
    assert_eq!(control.say("RLOCK.ACQUIRE x two 1000 WRITE"), Value::Nil);
    let line = ring(control.say(&ask("x", "two", "WRITE")));
    assert_eq!(
        line,
        "DEADLOCK two waits for x (one), one waits for x (two)"
    );
    assert_eq!(held_by(&mut control, "x"), "one read 1, two read 1");
    assert_eq!(control.say("RLOCK.RELEASE x two READ"), Value::Int(0));
    first.token();
    assert_eq!(held_by(&mut control, "x"), "one write 1, one read 1");
}

#[test]
fn an_upgrade_ahead_of_a_waiting_writer_is_no_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "x", "two", "READ");
    let mut writer = waits(&server, &ask("x", "w", "WRITE"));
    let mut upgrade = waits(&server, &ask("x", "one", "WRITE"));
    has_waiters(&mut control, "x", 2);
    control.say("RLOCK.RELEASE x two READ");
    upgrade.token();
    has_waiters(&mut control, "x", 1);
    control.say("RLOCK.RELEASE x one WRITE");
    control.say("RLOCK.RELEASE x one READ");
    writer.token();
}

#[test]
fn an_upgrade_may_close_a_ring_over_other_locks() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "x", "two", "READ");
    take(&mut control, "y", "one", "");
    let mut waiter = waits(&server, &ask("y", "two", ""));
    let line = ring(control.say(&ask("x", "one", "WRITE")));
    assert_eq!(
        line,
        "DEADLOCK one waits for x (two), two waits for y (one)"
    );
    assert_eq!(held_by(&mut control, "x"), "one read 1, two read 1");
    control.say("RLOCK.RELEASE y one");
    waiter.token();
}

#[test]
fn a_writer_waits_for_each_of_the_readers() {
    let server = Server::start();
    let mut control = server.raw();
    for n in 0..10 {
        take(&mut control, "x", &format!("r{n}"), "READ");
    }
    take(&mut control, "y", "w", "");
    let mut writer = waits(&server, &ask("x", "w", "WRITE"));
    for n in [0, 4, 9] {
        let line = ring(control.say(&ask("y", &format!("r{n}"), "")));
        let expected = format!("DEADLOCK r{n} waits for y (w), w waits for x (r{n})");
        assert_eq!(line, expected);
    }
    // Somebody who reads nothing may wait for the writer.
    let mut other = waits(&server, &ask("y", "z", ""));
    for n in 0..10 {
        control.say(&format!("RLOCK.RELEASE x r{n} READ"));
    }
    writer.token();
    control.say("RLOCK.RELEASE y w");
    other.token();
}

#[test]
fn a_reader_queued_behind_a_writer_waits_for_it() {
    // R1 reads x, W waits to write it, R2 holds z and stands behind W to read x:
    // R1 that asked for z would wait for R2, which waits for W, which waits for R1.
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "r1", "READ");
    take(&mut control, "z", "r2", "");
    let mut writer = waits(&server, &ask("x", "w", "WRITE"));
    let mut reader = waits(&server, &ask("x", "r2", "READ"));
    has_waiters(&mut control, "x", 2);
    let line = ring(control.say(&ask("z", "r1", "")));
    let expected = "DEADLOCK r1 waits for z (r2), r2 waits for x (w), w waits for x (r1)";
    assert_eq!(line, expected);
    has_waiters(&mut control, "x", 2);
    control.say("RLOCK.RELEASE x r1 READ");
    writer.token();
    control.say("RLOCK.RELEASE x w WRITE");
    reader.token();
}

#[test]
fn readers_do_not_wait_for_each_other() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "y", "two", "READ");
    take(&mut control, "y", "one", "READ");
    take(&mut control, "x", "two", "READ");
    // Both behind one writer, in both orders.
    take(&mut control, "a", "w", "WRITE");
    take(&mut control, "b", "w", "WRITE");
    let mut all: Vec<_> = [("a", "one"), ("b", "two"), ("b", "one"), ("a", "two")]
        .into_iter()
        .map(|(key, owner)| waits(&server, &ask(key, owner, "READ")))
        .collect();
    has_waiters(&mut control, "a", 2);
    has_waiters(&mut control, "b", 2);
    control.say("RLOCK.RELEASE a w WRITE");
    control.say("RLOCK.RELEASE b w WRITE");
    for reader in &mut all {
        reader.token();
    }
}

#[test]
fn reading_again_with_a_writer_waiting_is_nested_at_once() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    let mut writer = waits(&server, &ask("x", "w", "WRITE"));
    token(control.say(&ask("x", "one", "READ")));
    assert_eq!(held_by(&mut control, "x"), "one read 2");
    control.say("RLOCK.RELEASE x one READ ALL");
    writer.token();
}

#[test]
fn the_end_of_a_reader_takes_it_out_of_the_ring() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "x", "two", "READ");
    take(&mut control, "y", "w", "");
    let mut writer = waits(&server, &ask("x", "w", "WRITE"));
    assert_eq!(code(&control.say(&ask("y", "one", ""))), "DEADLOCK");
    control.say("RLOCK.RELEASE x one READ");
    // It may wait for the writer now; who still reads may not.
    let mut waiter = waits(&server, &ask("y", "one", ""));
    assert_eq!(info(&mut control, "y").waiters, 1);
    assert_eq!(code(&control.say(&ask("y", "two", ""))), "DEADLOCK");
    control.say("RLOCK.RELEASE x two READ");
    writer.token();
    control.say("RLOCK.RELEASE y w");
    waiter.token();
}

#[test]
fn a_reader_whose_lease_is_over_is_no_part_of_a_ring() {
    let server = Server::start();
    let mut control = server.raw();
    // What a client left behind that knows nothing of rlock: one of the two is dead.
    control.say_all(&[
        "HSET x mode read dead 1 alive 1",
        "SET {x}:alive:rwlock_timeout:1 1 PX 100000",
        "PEXPIRE x 100000",
    ]);
    take(&mut control, "y", "w", "");
    let _writer = waits(&server, &ask("x", "w", "WRITE"));
    let line = ring(control.say(&ask("y", "alive", "")));
    assert_eq!(
        line,
        "DEADLOCK alive waits for y (w), w waits for x (alive)"
    );
    let mut waiter = waits(&server, &ask("y", "dead", ""));
    assert_eq!(info(&mut control, "y").waiters, 1);
    control.say("RLOCK.RELEASE y w");
    waiter.token();
}

#[test]
fn a_ring_over_locks_of_every_kind_is_one() {
    let server = Server::start();
    let mut control = server.raw();
    take(&mut control, "plain", "one", "");
    take(&mut control, "read", "two", "READ");
    take(&mut control, "written", "three", "WRITE");
    take(&mut control, "many", "four", "");
    let mut waiters = [
        waits(&server, "RLOCK.MACQUIRE 2 free read one 100000 BLOCK 0"),
        waits(&server, &ask("written", "two", "READ")),
        waits(&server, &ask("many", "three", "")),
    ];
    has_waiters(&mut control, "read", 1);
    let line = ring(control.say(&ask("plain", "four", "WRITE")));
    let expected = "DEADLOCK four waits for plain (one), one waits for read (two), \
                    two waits for written (three), three waits for many (four)";
    assert_eq!(line, expected);
    control.say("RLOCK.RELEASE many four");
    waiters[2].token();
    control.say("RLOCK.RELEASE written three WRITE");
    waiters[1].token();
    control.say("RLOCK.RELEASE read two READ");
    waiters[0].token();
}

#[test]
fn the_second_of_two_upgrades_is_refused_also_without_the_search() {
    let server = Server::start_with(&["--rlock.deadlock-detection", "no"]);
    let mut control = server.raw();
    take(&mut control, "x", "one", "READ");
    take(&mut control, "x", "two", "READ");
    let mut first = waits(&server, &ask("x", "one", "WRITE"));
    assert_eq!(code(&control.say(&ask("x", "two", "WRITE"))), "DEADLOCK");
    control.say("RLOCK.RELEASE x two READ");
    first.token();
}
