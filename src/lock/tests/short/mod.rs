//! The short way: which requests go by it, and that all others have the long way.

mod bound;

use super::shell::{answers, by, key, Shell};
use crate::lock::ask::{Ask, Once, Only, Share};
use crate::lock::memory::{counter, Value};
use crate::lock::{
    self, Cause, ClientId, Ended, Event, Mode, Note, Notice, Outcome, Refusal, Slot, Token,
    Verdict, WakeTarget,
};

/// Nobody gets events, and so most requests go the short way.
fn shell() -> Shell {
    let mut s = Shell::new();
    s.core.rules.emits_events = false;
    s.core.rules.observes_all = false;
    s
}

/// Whether this begins no decision: the first of them leaves its list of work for the next.
fn is_short<T>(s: &mut Shell, act: impl FnOnce(&mut Shell) -> T) -> (bool, T) {
    s.core.spare = None;
    let result = act(s);
    (s.core.spare.is_none(), result)
}

fn takes(s: &mut Shell, owner: &str) -> bool {
    is_short(s, |s| s.get(by(owner))).0
}

fn releases(s: &mut Shell, owner: &str) -> bool {
    let (short, left) = is_short(s, |s| s.release(owner));
    assert_eq!(left, Ok(0));
    short
}

/// Others have made the key `k` this owner's, for so many ms from now.
fn put(s: &mut Shell, owner: &str, holds: i64, lease: i64) {
    let fields = [(owner.as_bytes().to_vec(), holds.to_string().into_bytes())];
    let end = Some(s.now.deadline(lease));
    let value = Value::Hash(fields.into());
    s.ks.keys.insert(key(0, "k"), (value, end));
}

#[test]
fn a_free_lock_is_taken_and_released_by_it() {
    let mut s = shell();
    let (short, token) = is_short(&mut s, |s| s.get(by("a").lease(70)));
    assert!(short);
    assert_eq!(s.held(), Some(("a".to_owned(), 1, Some(70))));
    assert_eq!(s.known(&key(0, "k"), "a"), Some((token, 0)));
    assert_eq!((s.core.counters.acquired, s.core.counters.released), (1, 0));
    assert_eq!(s.told, []);
    s.pass(30);
    assert!(releases(&mut s, "a"));
    assert_eq!(s.held(), None);
    assert_eq!(s.core.counters.released, 1);
    assert_eq!(s.core.counters.holds.longest_us, 30_000);
    let (key, target) = (key(0, "k"), WakeTarget::One);
    assert_eq!(s.told, [Notice::Wake { key, target }]);
    assert!(s.core.is_idle());
    s.core.check();
}

#[test]
fn its_tokens_rise_above_those_of_the_long_way() {
    let mut s = shell();
    let mut last = Token(0);
    for emits in [false, true, false, true] {
        s.core.rules.emits_events = emits;
        let token = s.get(by("a"));
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        s.release("a").unwrap();
    }
}

#[test]
fn a_lease_that_it_began_ends_in_time() {
    let mut s = shell();
    assert!(takes(&mut s, "a"));
    s.pass_and_tick(1001);
    assert_eq!(s.held(), None);
    assert_eq!(s.core.counters.expired, 1);
    assert!(takes(&mut s, "b"));
}

#[test]
fn the_next_plain_request_is_handed_the_lock_by_it() {
    let mut s = shell();
    assert!(takes(&mut s, "a"));
    let (b, c) = (s.wait(by("b").lease(500)), s.wait(by("c")));
    s.pass(20);
    s.told.clear();
    assert!(releases(&mut s, "a"));
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(500))));
    let (token, held_ms) = s.known(&key(0, "k"), "b").unwrap();
    assert_eq!(held_ms, 0);
    assert_eq!(answers(&s.told), [(b, Outcome::Granted(token))]);
    assert!(!s
        .told
        .iter()
        .any(|notice| matches!(notice, Notice::Wake { .. })));
    let counters = &s.core.counters;
    assert_eq!((counters.acquired, counters.released), (2, 1));
    assert_eq!(
        (counters.waits.count, counters.waits.longest_us),
        (1, 20_000)
    );
    assert_eq!(
        (counters.holds.count, counters.holds.longest_us),
        (1, 20_000)
    );
    s.core.check();
    // Its reply may be lost still.
    s.lose(b);
    let (token, _) = s.known(&key(0, "k"), "c").unwrap();
    assert!(answers(&s.told).contains(&(c, Outcome::Granted(token))));
    s.core.confirm(c);
    assert!(releases(&mut s, "c"));
    assert!(s.core.is_idle());
}

#[test]
fn who_asks_for_more_than_a_plain_lock_has_the_long_way() {
    for request in [by("a").read(), by("a").write(), by("a").permits(1, 2)] {
        let mut s = shell();
        assert!(!is_short(&mut s, |s| s.get(request)).0, "{request:?}");
    }
    for request in [
        by("a").once().block(5),
        by("a").watched().from(1),
        by("a").tag("t").from(1),
    ] {
        let mut s = shell();
        assert!(is_short(&mut s, |s| s.get(request)).0, "{request:?}");
        s.core.check();
    }
}

/// ACQUIRE k a 1000, before anything that is due.
fn acquire_at_once(s: &mut Shell) -> Result<Verdict, Refusal> {
    let ask = Ask {
        db: 0,
        owner: b"a",
        client: None,
        mode: Mode::Exclusive,
        share: Share::HOLD,
        lease: 1000,
        once: Once::Nests,
        watch: false,
        notify: None,
        wait: None,
    };
    lock::acquire(&mut s.decider(), b"k", &ask)
}

#[test]
fn a_lock_of_which_anything_is_known_has_the_long_way() {
    let k = key(0, "k");
    type Setup = fn(&mut Shell);
    let setups: [(&str, Setup); 9] = [
        ("it is its owner's", |s| {
            s.get(by("a"));
        }),
        ("it has a counter", |s| {
            let value = Value::Number(7);
            s.ks.keys.insert(counter(&key(0, "k")), (value, None));
        }),
        ("all locks have one", |s| s.core.rules.counts = true),
        ("something was heard", |s| {
            s.core.heard.of(key(0, "other"), Cause::Removed);
        }),
        ("something is due", |s| {
            s.core.due.dirty.insert(key(0, "other"));
        }),
        ("a request is to leave", |s| {
            s.get(by("x").on("other"));
            let id = s.wait(by("y").on("other"));
            lock::disconnected(&mut s.core, id);
        }),
        ("somebody gets events", |s| s.core.rules.emits_events = true),
        ("it has run out just now", |s| {
            put(s, "x", 1, 0);
            s.pass(2);
        }),
        ("it is a cluster", |s| s.ks.slot = Slot::Migrating),
    ];
    for (what, setup) in setups {
        let mut s = shell();
        setup(&mut s);
        let (short, verdict) = is_short(&mut s, acquire_at_once);
        assert!(!short, "{what}");
        let Ok(Verdict::Granted(token)) = verdict else {
            panic!("{what}: {verdict:?}");
        };
        if what == "it has a counter" {
            assert_eq!(s.ks.keys[&counter(&k)].0, Value::Number(token.0));
        }
        s.core.check();
    }
}

#[test]
fn while_nothing_is_granted_it_grants_nothing() {
    let mut s = shell();
    s.core.rules.grants_in = Some(5);
    assert_eq!(s.acquire(by("a")), Err(Refusal::NotYet { ms: 5 }));
}

#[test]
fn a_release_that_means_more_has_the_long_way() {
    let release = |s: &mut Shell, mode, count, only| {
        let ended = Ended {
            db: 0,
            owner: b"a",
            client: None,
            mode,
            count,
            only,
        };
        is_short(s, |s| s.asks(|with| lock::release(with, b"k", &ended)))
    };
    for (count, only) in [(Some(1), None), (None, None), (Some(1), Some(Only::Held))] {
        let mut s = shell();
        s.get(by("a"));
        assert_eq!(release(&mut s, Mode::Exclusive, count, only), (true, Ok(0)));
    }
    let mut s = shell();
    let token = Some(Only::Token(s.get(by("a"))));
    assert_eq!(
        release(&mut s, Mode::Exclusive, Some(1), token),
        (true, Ok(0))
    );
    // Another hold of the same owner's, which ends at another moment.
    let token = Some(Only::Token(s.get(by("a"))));
    put(&mut s, "a", 1, 70);
    assert_eq!(
        release(&mut s, Mode::Exclusive, Some(1), token),
        (false, Ok(0))
    );
    assert!(s.held().is_some(), "it is not known to have that token");

    let mut s = shell();
    let token = s.get(by("a"));
    let other = Only::Token(Token(token.0 + 1));
    let (short, left) = release(&mut s, Mode::Exclusive, Some(1), Some(other));
    assert_eq!((short, left), (false, Ok(0)));
    assert!(s.held().is_some(), "it meant another hold");
    assert!(release(&mut s, Mode::Read, Some(1), None).1.is_err());
    assert!(s.held().is_some(), "it is no reader's");
}

#[test]
fn a_hold_that_is_more_than_one_plain_one_has_the_long_way() {
    type Setup = fn(&mut Shell);
    let setups: [(&str, Setup, Option<i64>); 4] = [
        (
            "nested",
            |s| {
                s.get(by("a"));
                s.get(by("a"));
            },
            Some(1),
        ),
        ("found", |s| put(s, "a", 1, 50), Some(0)),
        (
            "raised by hand",
            |s| {
                s.get(by("a"));
                put(s, "a", 3, 1000);
            },
            Some(2),
        ),
        (
            "another's by now",
            |s| {
                s.get(by("a"));
                s.ks.keys.clear();
                put(s, "b", 1, 50);
            },
            None,
        ),
    ];
    for (what, setup, left) in setups {
        let mut s = shell();
        setup(&mut s);
        let (short, got) = is_short(&mut s, |s| s.release("a"));
        assert!(!short, "{what}");
        assert_eq!(got.ok(), left, "{what}");
        s.core.check();
    }
}

#[test]
fn a_next_one_that_is_not_plain_is_granted_by_the_long_way() {
    type Setup = fn(&mut Shell);
    let setups: [(&str, Setup, &str); 5] = [
        (
            "it reads",
            |s| {
                s.wait(by("b").read());
            },
            "b",
        ),
        (
            "it wants a permit",
            |s| {
                s.wait(by("b").permits(1, 1));
            },
            "b",
        ),
        (
            "it wants two",
            |s| {
                s.wait(by("b").on("k l"));
            },
            "b",
        ),
        (
            "it waits twice",
            |s| {
                s.wait(by("b"));
                s.get(by("x").on("l"));
                s.wait(by("b").on("l"));
            },
            "b",
        ),
        (
            "it is late",
            |s| {
                s.wait(by("b").block(5));
                s.wait(by("c"));
                s.pass(5);
            },
            "c",
        ),
    ];
    for (what, setup, next) in setups {
        let mut s = shell();
        s.get(by("a"));
        setup(&mut s);
        assert!(!releases(&mut s, "a"), "{what}");
        let holds = s.core.locks.hold(&key(0, "k"), next.as_bytes());
        assert!(holds.is_some(), "{what}");
        s.core.check();
    }
}

#[test]
fn who_may_not_take_it_any_more_is_passed_over() {
    let mut s = shell();
    s.get(by("a"));
    let b = s.wait(by("b").from(7));
    let c = s.wait(by("c"));
    s.ks.without_rights.insert(ClientId::new(7).unwrap());
    s.told.clear();
    s.release("a").unwrap();
    assert!(s.core.locks.hold(&key(0, "k"), b"c").is_some());
    let told = answers(&s.told);
    assert!(matches!(told[0], (id, Outcome::Refused(Refusal::NoPermission { .. })) if id == b));
    assert!(matches!(told[1], (id, Outcome::Granted(_)) if id == c));
}

#[test]
fn what_others_did_unheard_is_seen() {
    let mut s = shell();
    assert!(takes(&mut s, "a"));
    s.ks.keys.clear();
    let verdict = s.acquire(by("b"));
    assert!(matches!(verdict, Ok(Verdict::Granted(_))));
    assert_eq!(s.held().unwrap().0, "b");
    let event = |event| {
        s.told
            .iter()
            .any(|told| matches!(told, Notice::Event { event: its, .. } if *its == event))
    };
    assert!(!event(Event::Expired));
    s.notes.push(Note::Changed(key(0, "k"), Cause::Unknown));
    s.read_notes();
    s.core.check();
}

/// Its end was brought forward by hand, unheard, and it runs out at the very look of its RELEASE.
#[test]
fn a_lock_that_runs_out_at_the_look_has_expired() {
    for emits in [true, false] {
        let mut s = shell();
        s.core.rules.emits_events = emits;
        s.get(by("a"));
        put(&mut s, "a", 1, 50);
        s.pass(60);
        assert!(s.release("a").is_err());
        assert_eq!(s.core.counters.expired, 1, "{emits}");
        assert!(s.core.is_idle());
        s.core.check();
    }
}
