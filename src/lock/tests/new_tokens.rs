//! RENEW … TOKEN: a hold goes on with a new token, and the one before is no hold's any more.

use super::shell::{by, key, Request, Shell};
use crate::lock::memory::{counter, Value};
use crate::lock::{
    self, Aim, Counter, Ended, Fence, Keyspace, Mode, Only, Outcome, Owner, Refusal, Slot, Token,
};

/// RENEW k … TOKEN, for two seconds.
fn renew(s: &mut Shell, owner: &str, mode: Mode) -> Result<Token, Refusal> {
    let token = s.renew_to(&key(0, "k"), owner, (mode, 2000), Some(Fence::New))?;
    Ok(token.expect("a token"))
}

/// Whether RELEASE k … IFTOKEN ended something.
fn releases(s: &mut Shell, owner: &str, mode: Mode, token: Token) -> bool {
    let ended = Ended {
        db: 0,
        owner: owner.as_bytes(),
        client: None,
        mode,
        count: None,
        only: Some(Only::Token(token)),
    };
    let before = s.ks.keys.clone();
    assert_eq!(s.asks(|with| lock::release(with, b"k", &ended)), Ok(0));
    s.ks.keys != before
}

fn forces(s: &mut Shell, token: Token) -> bool {
    let aim = Aim::Token(token);
    s.step(|d| lock::force(d, 0, b"k", None, Some(&aim)))
        .unwrap()
}

/// What operators are shown.
fn shown(s: &Shell, owner: &str, mode: Mode) -> (Option<Token>, Option<i64>) {
    let known = s.core.hold_of(s.now, &key(0, "k"), owner.as_bytes(), mode);
    (known.token, known.held_ms)
}

/// In each mode.
fn requests() -> [Request<'static>; 4] {
    let a = by("a");
    [a, a.read(), a.write(), a.permits(1, 2)]
}

#[test]
fn the_hold_goes_on_with_a_greater_one() {
    for request in requests() {
        let mut s = Shell::new();
        let first = s.get(request);
        s.pass(700);
        let token = renew(&mut s, "a", request.mode).unwrap();
        assert!(token > first);
        assert_eq!(shown(&s, "a", request.mode), (Some(token), Some(700)));
        let (_, holds, left) = s.held().unwrap();
        assert_eq!((holds, left), (1, Some(2000)), "{request:?}");
        // A request whose reply was lost is told of it.
        assert_eq!(s.get(request.once()), token);
        let again = renew(&mut s, "a", request.mode).unwrap();
        assert!(again > token);
        s.release_as(&key(0, "k"), "a", request.mode, false)
            .unwrap();
        assert_eq!(s.held(), None);
        assert!(s.get(by("b")) > again);
    }
}

#[test]
fn what_nests_in_it_has_the_new_one() {
    for request in &requests()[..3] {
        let mut s = Shell::new();
        s.get(*request);
        let token = renew(&mut s, "a", request.mode).unwrap();
        assert_eq!(s.get(*request), token);
    }
}

#[test]
fn the_one_before_is_no_holds_any_more() {
    for request in requests() {
        let mut s = Shell::new();
        let first = s.get(request);
        let second = renew(&mut s, "a", request.mode).unwrap();
        let third = renew(&mut s, "a", request.mode).unwrap();
        for old in [first, second] {
            assert!(!forces(&mut s, old), "{request:?}");
            assert!(!releases(&mut s, "a", request.mode, old), "{request:?}");
        }
        assert!(releases(&mut s, "a", request.mode, third), "{request:?}");
        s.get(request);
        let token = renew(&mut s, "a", request.mode).unwrap();
        assert!(forces(&mut s, token), "{request:?}");
    }
}

/// A reader whose holds were given several, before and after an upgrade.
#[test]
fn nor_is_any_of_several() {
    let mut s = Shell::new();
    let read = s.get(by("a").read());
    let written = s.get(by("a").write());
    assert_eq!(s.get(by("a").read()), written);
    s.release_as(&key(0, "k"), "a", Mode::Write, false).unwrap();
    s.release_as(&key(0, "k"), "a", Mode::Read, false).unwrap();
    let token = renew(&mut s, "a", Mode::Read).unwrap();
    for old in [read, written, Token(token.0 - 1)] {
        assert!(!releases(&mut s, "a", Mode::Read, old));
    }
    assert!(releases(&mut s, "a", Mode::Read, token));
    // A writer that read before.
    s.get(by("a").read());
    let written = s.get(by("a").write());
    s.release_as(&key(0, "k"), "a", Mode::Read, false).unwrap();
    let token = renew(&mut s, "a", Mode::Write).unwrap();
    assert!(!releases(&mut s, "a", Mode::Write, written));
    assert!(releases(&mut s, "a", Mode::Write, token));
}

#[test]
fn an_owner_with_more_than_one_hold_is_refused() {
    let a = by("a");
    let held: [&[Request<'_>]; 5] = [
        &[a, a],
        &[a.read(), a.read()],
        &[a.read(), a.write()],
        &[a.permits(2, 3)],
        &[a.permits(1, 3), a.permits(1, 3)],
    ];
    for requests in held {
        let mut s = Shell::new();
        for request in requests {
            s.get(*request);
        }
        let mode = requests[0].mode;
        let (before, was) = (s.ks.keys.clone(), shown(&s, "a", mode));
        let many = Refusal::ManyHolds {
            key: key(0, "k"),
            owner: Owner::from(&b"a"[..]),
        };
        assert_eq!(renew(&mut s, "a", mode), Err(many));
        assert_eq!(s.ks.keys, before);
        assert_eq!(shown(&s, "a", mode), was);
    }
}

#[test]
fn who_does_not_hold_it_is_refused() {
    let mut s = Shell::new();
    s.get(by("a").read());
    let before = s.ks.keys.clone();
    for (owner, mode) in [
        ("b", Mode::Read),
        ("a", Mode::Write),
        ("a", Mode::Exclusive),
    ] {
        let refused = renew(&mut s, owner, mode);
        assert!(matches!(refused, Err(Refusal::NotHeld { .. })));
    }
    assert_eq!(s.ks.keys, before);
}

#[test]
fn other_readers_keep_theirs() {
    let mut s = Shell::new();
    s.get(by("a").read());
    let other = s.get(by("b").read());
    let token = renew(&mut s, "a", Mode::Read).unwrap();
    assert!(token > other);
    assert!(!releases(&mut s, "b", Mode::Read, token));
    assert!(releases(&mut s, "b", Mode::Read, other));
}

#[test]
fn a_hold_that_was_found_gets_one() {
    let mut s = Shell::new();
    s.get(by("a"));
    let mut other = Shell::new();
    other.ks.keys = s.ks.keys;
    let token = renew(&mut other, "a", Mode::Exclusive).unwrap();
    assert_eq!(shown(&other, "a", Mode::Exclusive), (Some(token), Some(0)));
    assert!(releases(&mut other, "a", Mode::Exclusive, token));
}

/// Its owner knows of the hold by the newer token.
#[test]
fn a_grant_that_is_lost_after_it_ends_nothing() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.release("a").unwrap();
    let answers = s.answers();
    let token = renew(&mut s, "b", Mode::Exclusive).unwrap();
    assert!(matches!(answers[..], [(_, Outcome::Granted(given))] if given < token));
    s.lose(b);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(2000))));
    assert_eq!(shown(&s, "b", Mode::Exclusive).0, Some(token));
}

#[test]
fn it_is_written_where_a_grant_writes_its_own() {
    let mut s = Shell::new();
    let at = key(0, "k");
    s.get(by("a"));
    renew(&mut s, "a", Mode::Exclusive).unwrap();
    assert_eq!(s.ks.counter(&at), Counter::Absent);
    s.core.rules.counts = true;
    let token = renew(&mut s, "a", Mode::Exclusive).unwrap();
    assert_eq!(s.ks.counter(&at), Counter::At(token));
    s.core.rules.counts = false;
    let ahead = Token(token.0 + 1_000_000_000);
    let end = Some(s.now.deadline(5000));
    s.ks.keys
        .insert(counter(&at), (Value::Number(ahead.0), end));
    assert_eq!(renew(&mut s, "a", Mode::Exclusive), Ok(ahead.next()));
    let kept = (Value::Number(ahead.0 + 1), end);
    assert_eq!(s.ks.keys.get(&counter(&at)), Some(&kept));
}

#[test]
fn where_the_counter_refuses_nothing_changes() {
    let mut s = Shell::new();
    s.core.rules.counts = true;
    let first = s.get(by("a"));
    let name = counter(&key(0, "k"));
    // It may be on another node.
    s.ks.keys.remove(&name);
    s.ks.slot = Slot::Migrating;
    let before = s.ks.keys.clone();
    let refused = renew(&mut s, "a", Mode::Exclusive);
    assert_eq!(refused, Err(Refusal::Migrating { key: key(0, "k") }));
    assert_eq!(s.ks.keys, before);
    s.ks.slot = Slot::Ours;
    for value in [Value::Text, Value::Number(Token::MOST.0)] {
        s.ks.keys.insert(name.clone(), (value, None));
        let before = s.ks.keys.clone();
        assert!(renew(&mut s, "a", Mode::Exclusive).is_err());
        assert_eq!(s.ks.keys, before);
    }
    assert_eq!(shown(&s, "a", Mode::Exclusive).0, Some(first));
}

/// So many other locks were ahead of the clock since that it is not remembered of this one.
#[test]
fn it_is_above_that_of_the_hold_whatever_was_forgotten() {
    let mut s = Shell::new();
    let lift = |s: &mut Shell, name: &str| {
        let counter = counter(&key(0, name));
        let ahead = Value::Number(Token::MOST.0 - 1_000_000);
        s.ks.keys.insert(counter.clone(), (ahead, None));
        let token = s.get(by("a").on(name).lease(1_000_000));
        s.ks.keys.remove(&counter);
        token
    };
    let first = lift(&mut s, "k");
    for n in 0..10_000 {
        let name = format!("n{n}");
        lift(&mut s, &name);
        s.release_on(&key(0, &name), "a", true).unwrap();
    }
    assert_eq!(renew(&mut s, "a", Mode::Exclusive), Ok(first.next()));
}
