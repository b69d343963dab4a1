//! Who is somebody that a hold keeps out.

use super::*;

#[test]
fn a_reader_is_in_the_way_of_who_writes_and_not_of_who_reads() {
    let mut s = Shell::new();
    s.core.rules.redisson_yield_us = Some(20_000);
    s.get(asks().read());
    s.get(by("c").read().lease(300).from(OTHER).tag("u").wants_hints());
    // Readers do not wait beside readers.
    s.get(by("d").read());
    are_hinted(&mut s, []);
    let w = s.wait(by("w").write());
    are_hinted(&mut s, ["wanted t", "wanted u"]);
    s.wait(by("e").read());
    are_hinted(&mut s, []);
    // It is the reader's turn then, who has it beside them.
    leave(&mut s, w);
    are_hinted(&mut s, []);
    s.pass_and_tick(100);
    are_hinted(&mut s, []);
}

#[test]
fn a_writer_is_in_the_way_of_who_reads_and_an_upgrade_is_not_its_own() {
    let mut s = Shell::new();
    s.get(asks().write());
    s.wait(by("b").read());
    are_hinted(&mut s, ["wanted t"]);
    let mut s = Shell::new();
    s.get(asks().read());
    s.get(by("c").read().from(OTHER).tag("u").wants_hints());
    s.wait(by("a").write());
    are_hinted(&mut s, ["wanted u"]);
}

#[test]
fn who_reads_and_writes_is_told_by_both_tags() {
    let mut s = Shell::new();
    s.get(asks().read());
    s.get(asks().write().tag("u"));
    s.wait(by("c").read());
    are_hinted(&mut s, ["wanted u", "wanted t"]);
}

#[test]
fn who_holds_permits_is_in_the_way_of_who_waits_for_some() {
    let mut s = Shell::new();
    s.get(asks().permits(1, 3));
    s.get(by("c").permits(2, 3));
    are_hinted(&mut s, []);
    s.wait(by("b").permits(2, 3));
    are_hinted(&mut s, ["wanted t"]);
}

#[test]
fn who_waits_for_several_locks_is_somebody_once_the_others_are_to_be_had() {
    for names in ["j k", "k j", "k j l"] {
        let mut s = held();
        s.get(by("c").on("j"));
        s.wait(by("b").on(names));
        are_hinted(&mut s, []);
        s.pass_and_tick(100);
        are_hinted(&mut s, []);
        assert_eq!(s.release_on(&key(0, "j"), "c", false), Ok(0));
        are_hinted(&mut s, ["wanted t"]);
    }
    // What the holder has of them too is to be had with it.
    let mut s = held();
    s.get(by("a").on("j"));
    s.get(by("b").on("l"));
    s.wait(by("b").on("j k l"));
    are_hinted(&mut s, ["wanted t"]);
    // As soon as nobody stands before it at any of them.
    let mut s = held();
    s.get(by("c").on("j"));
    s.wait(by("a").on("j"));
    s.wait(by("b").on("j k"));
    are_hinted(&mut s, []);
    assert_eq!(s.release_on(&key(0, "j"), "c", false), Ok(0));
    are_hinted(&mut s, ["wanted t"]);
}

#[test]
fn who_waits_by_subscription_is_somebody_until_a_turn_goes_unused() {
    let mut s = Shell::new();
    s.core.rules.redisson_yield_us = Some(20_000);
    s.get(asks().watched());
    s.told.clear();
    for _ in 0..3 {
        s.pass_and_tick(100);
        s.find_subscribers(false);
        are_hinted(&mut s, []);
    }
    for _ in 0..3 {
        s.pass_and_tick(100);
        s.find_subscribers(true);
        are_hinted(&mut s, ["wanted t"]);
    }
    assert_eq!(wanted_ms(&s, "a"), Some(200));
    // Nobody listens any more.
    s.pass_and_tick(100);
    s.find_subscribers(false);
    are_hinted(&mut s, []);
    assert_eq!(wanted_ms(&s, "a"), None);
    s.pass_and_tick(100);
    s.find_subscribers(true);
    are_hinted(&mut s, ["wanted t"]);
    // It gives way, and they do not take it.
    s.release("a").unwrap();
    s.find_subscribers(true);
    for _ in 0..5 {
        s.pass_and_tick(10);
        s.find_subscribers(true);
    }
    assert!(!s.core.has_turn(0, b"k"));
    s.get(asks().watched());
    for _ in 0..10 {
        s.pass_and_tick(100);
        s.find_subscribers(true);
    }
    are_hinted(&mut s, []);
}
