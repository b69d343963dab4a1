//! Two databases are exchanged: who waits where is known anew, key by key, as they are looked at.

use super::shell::{by, key, Request, Shell};
use crate::lock::{Notice, Occasion, Owner, Verdict};

const MANY: usize = 1_000;

#[test]
fn who_waits_is_known_anew_some_at_a_time() {
    let names: Vec<String> = (0..MANY).map(|number| format!("k{number}")).collect();
    let mut s = Shell::new();
    for name in &names {
        s.get(by("other").on(name));
        s.wait(by("a").on(name));
    }
    s.told.clear();
    s.piece_us = 10_000;
    s.swap(0, 1);
    s.tick();
    let marked = |s: &Shell, db| {
        let keys = names.iter().map(|name| key(db, name));
        let waited_for = |key: &_| s.core.locks.get(key).is_some_and(|of| of.waited_for);
        keys.filter(waited_for).count()
    };
    assert!(marked(&s, 0) < MANY / 4, "all at once");
    assert!(marked(&s, 1) > MANY * 3 / 4, "all at once");
    // Others come and go meanwhile, whether their key was looked at or not.
    for (place, name) in names.iter().step_by(7).enumerate() {
        let id = s.wait(by("b").on(name));
        if place % 2 == 0 {
            crate::lock::leave(&mut s.core, id);
        }
        s.core.check();
    }
    s.read_notes();
    s.core.check();
    assert_eq!((marked(&s, 0), marked(&s, 1)), (s.core.queues.len(), 0));
    assert_eq!(s.answers().len(), MANY, "nobody holds any there");
}

#[test]
fn an_exchange_of_others_leaves_nobody_out() {
    for (one, other) in [(2, 3), (0, 2), (1, 2), (1, 0), (0, 0)] {
        let mut s = Shell::new();
        s.get(by("other"));
        let waits = s.wait(by("a"));
        s.swap(0, 1);
        s.swap(one, other);
        s.read_notes();
        s.tick();
        s.core.check();
        let is_back = (one, other) == (1, 0);
        assert_eq!(s.core.queues.get(waits).is_some(), is_back, "{one} {other}");
    }
}

#[test]
fn a_lock_that_comes_back_without_its_readers_is_granted() {
    for (one, other) in [(0, 1), (1, 0)] {
        let mut s = Shell::new();
        s.get(by("a").read());
        let waits = s.wait(by("w").write());
        // Its lease key stays, and goes when the hash comes back.
        s.rename(&key(0, "k"), &key(1, "k"));
        s.swap(one, other);
        s.read_notes();
        s.tick();
        s.core.check();
        assert!(s.core.queues.get(waits).is_none(), "{one} {other}");
    }
}

#[test]
fn who_was_demoted_meanwhile_knows_of_nobody() {
    let mut s = Shell::new();
    for name in ["k", "l", "m"] {
        s.get(by("other").on(name));
        s.wait(by("a").on(name).queue(0).tag(name));
    }
    s.swap(0, 1);
    s.run(Occasion::Command);
    crate::lock::demoted(&mut s.core);
    s.read_notes();
    s.tick();
    assert!(s.core.queues.is_empty());
    assert!(s.core.is_idle());
    s.core.check();
}

/// One permit of two.
fn one(owner: &str) -> Request<'_> {
    by(owner).permits(1, 2)
}

/// What was known in the one database of those who wait is not taken for true in the other.
#[test]
fn nobody_is_refused_for_one_who_waits_in_the_other_database() {
    let mut s = Shell::new();
    s.get(one("a"));
    s.get(one("b"));
    s.wait(one("a"));
    s.swap(0, 1);
    s.run(Occasion::Command);
    let there = Request { db: 1, ..one("b") };
    assert!(matches!(s.acquire(there.block(0)), Ok(Verdict::Waits(_))));
    s.read_notes();
    s.core.check();
}

/// What was granted after a flush is no hold that it took.
#[test]
fn who_is_granted_behind_a_flush_is_not_told_that_it_took_the_lock() {
    let mut s = Shell::new();
    s.get(by("a").queue(0).tag("a"));
    for owner in ["b", "c"] {
        s.wait(by(owner).queue(0).tag(owner));
    }
    s.swap(0, 1);
    s.swap(0, 1);
    s.flush(Some(0));
    s.told.clear();
    s.read_notes();
    s.tick();
    assert_eq!(s.answers().len(), 1, "one is granted");
    let is_lost =
        |notice: &_| matches!(notice, Notice::Lost(loss) if loss.owner == Owner::from(&b"b"[..]));
    assert!(!s.told.iter().any(is_lost), "{:?}", s.told);
    s.core.check();
}
