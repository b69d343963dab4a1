//! Two databases are exchanged: who waits where is known anew, key by key, as they are looked at.

use super::shell::{by, key, Request, Shell};
use crate::lock::{Mode, Notice, Occasion, Outcome, Owner, Refusal, Verdict, WaiterId};

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

/// Who would wait for each other for ever elsewhere is refused meanwhile.
#[test]
fn others_are_refused_as_ever_while_two_databases_are_exchanged() {
    let mut s = Shell::new();
    for number in 0..MANY {
        s.get(by("other").on(&format!("k{number}")));
    }
    let at = |owner| Request {
        db: 2,
        ..one(owner)
    };
    s.get(at("a"));
    s.get(at("b"));
    s.wait(at("a"));
    s.swap(0, 1);
    s.piece_us = 10_000;
    s.run(Occasion::Command);
    assert!(s.core.heard.is_any_new(), "it goes on still");
    let refused = s.acquire(at("b").block(0));
    assert!(matches!(refused, Err(Refusal::Deadlock { .. })));
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

/// A request on a key of another database than the first.
fn there<'a>(owner: &'a str, db: i32, name: &'a str) -> Request<'a> {
    let there = Request {
        db,
        ..by(owner).on(name)
    };
    there.lease(100_000)
}

/// b waits for `n` and stands before c for `j`, in the database 1; c has `m`, in 2.
fn behind_one_who_waits(s: &mut Shell) -> [WaiterId; 2] {
    s.get(there("a", 1, "n"));
    let first = s.wait(there("b", 1, "j n"));
    let second = s.wait(there("c", 1, "j"));
    s.get(there("c", 2, "m"));
    [first, second]
}

#[test]
fn a_cycle_that_is_closed_right_behind_an_exchange_is_refused() {
    let takes: [fn(&mut Shell); 2] = [
        |s| _ = s.get(there("y", 0, "n")),
        |s| s.script_takes(&key(0, "n"), "z", 100_000),
    ];
    for take in takes {
        let mut s = Shell::new();
        behind_one_who_waits(&mut s);
        take(&mut s);
        s.read_notes();
        s.swap(0, 1);
        let Err(Refusal::Deadlock { cycle }) = s.acquire(there("b", 2, "m").block(0)) else {
            panic!("b waits for c, which waits for b");
        };
        let names: Vec<&[u8]> = cycle.iter().map(|link| &*link.on.name).collect();
        assert_eq!(names, [b"m", b"j"]);
        s.read_notes();
        s.core.check();
        assert_eq!(s.core.waiting(), 2);
    }
}

/// Whatever a request has found out of a key before its time came.
#[test]
fn a_key_that_was_asked_for_right_behind_an_exchange_is_looked_at_still() {
    let mut s = Shell::new();
    let [first, second] = behind_one_who_waits(&mut s);
    s.told.clear();
    s.swap(0, 1);
    for name in ["n", "j"] {
        s.wait(there("q", 1, name));
    }
    s.read_notes();
    s.core.check();
    let granted: Vec<WaiterId> = s.answers().iter().map(|(id, _)| *id).collect();
    assert_eq!(granted, [first], "all are free there");
    for name in ["n", "j"] {
        s.release_on(&key(1, name), "b", false).unwrap();
    }
    assert!(s.core.queues.get(second).is_none());
}

/// They come with the lock, and one of them waits for whoever waits for them.
#[test]
fn very_many_who_come_with_a_lock_are_part_of_a_cycle() {
    for many in [3, 1_000] {
        let mut s = Shell::new();
        let readers: Vec<String> = (0..many).map(|number| format!("r{number}")).collect();
        for reader in &readers {
            s.get(there(reader, 0, "k").read());
        }
        s.get(there("w", 2, "m"));
        s.get(there("a", 1, "k").write());
        let writes = s.wait(there("w", 1, "k").write());
        let waits = s.wait(there("r2", 2, "m"));
        s.told.clear();
        s.swap(0, 1);
        s.read_notes();
        while !s.core.inquiry.is_at_rest() {
            s.pass_and_tick(1);
        }
        s.core.check();
        let refused = |(_, outcome): &&(WaiterId, Outcome)| matches!(outcome, Outcome::Refused(_));
        let answers = s.answers();
        let refused: Vec<_> = answers.iter().filter(refused).map(|(id, _)| *id).collect();
        assert!(
            matches!(refused[..], [id] if id == writes || id == waits),
            "{many}: {refused:?}"
        );
    }
}

/// The hold of a grant whose reply is lost ends, and not the newest of the same connection.
#[test]
fn a_lost_grant_ends_its_own_hold_though_that_has_moved() {
    let mut s = Shell::new();
    s.get(by("a"));
    let id = s.wait(by("c").from(5).watched().tag("first").queue(0));
    s.release("a").unwrap();
    s.swap(0, 1);
    s.read_notes();
    let again = by("c").from(5).tag("second");
    s.get(Request { db: 1, ..again });
    s.lose(id);
    let hold = s.core.locks.hold(&key(1, "k"), b"c").expect("it is held");
    let watch = hold.watch.as_ref().expect("it is bound");
    let tags: Vec<&[u8]> = watch.addresses().map(|address| &*address.tag).collect();
    assert_eq!(tags, [b"second"]);
    assert_eq!(watch.holds(Mode::Exclusive), 1);
}
