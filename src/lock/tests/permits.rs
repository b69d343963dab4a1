//! Permits: several hold a lock, and no more are out than its limit.

use super::shell::{by, key, Request, Shell};
use crate::lock::memory::Value;
use crate::lock::{Event, Mode, NoPermits, Outcome, Pool, Refusal, Verdict};

fn pool(shell: &Shell) -> Option<Pool> {
    shell.core.pool_of(&mut shell.ks.clone(), &key(0, "k"))
}

fn out(shell: &Shell) -> i64 {
    pool(shell).map_or(0, |pool| pool.out)
}

/// One permit of two.
fn one(owner: &str) -> Request<'_> {
    by(owner).permits(1, 2)
}

fn is_null(shell: &mut Shell, request: Request<'_>) -> bool {
    matches!(shell.acquire(request), Ok(Verdict::Refused))
}

fn release(shell: &mut Shell, owner: &str) -> Result<i64, Refusal> {
    shell.release_as(&key(0, "k"), owner, Mode::Permits, false)
}

#[test]
fn no_more_are_out_than_the_limit() {
    let mut shell = Shell::new();
    shell.get(one("a"));
    shell.get(one("b"));
    assert!(is_null(&mut shell, one("c")));
    assert_eq!(release(&mut shell, "a"), Ok(0));
    shell.get(one("c"));
    assert_eq!(out(&shell), 2);
}

#[test]
fn the_lock_is_free_when_the_last_one_is_back() {
    let mut shell = Shell::new();
    shell.get(one("a"));
    shell.get(one("b"));
    release(&mut shell, "a").unwrap();
    release(&mut shell, "b").unwrap();
    assert!(shell.ks.keys.is_empty(), "{:?}", shell.ks.keys);
    assert!(shell.core.is_idle());
}

#[test]
fn each_lease_ends_alone_and_lets_the_next_in() {
    let mut shell = Shell::new();
    shell.get(one("a").lease(100));
    shell.get(one("b").lease(500));
    let waits = shell.wait(one("c").lease(10_000));
    shell.pass_us(101_000, 101_000);
    shell.tick();
    assert!(shell.core.queues.get(waits).is_none(), "it has its permit");
    assert_eq!(out(&shell), 2);
    shell.pass_us(400_000, 400_000);
    shell.tick();
    assert_eq!(out(&shell), 1);
}

/// A timer that is late comes to the wait that is over before it comes to the lease.
#[test]
fn what_has_ended_is_ended_before_who_waits_gets_in() {
    let mut shell = Shell::new();
    let at = key(0, "k");
    shell.get(one("a").lease(500));
    shell.renew_as(&at, "a", Mode::Permits, 100).unwrap();
    shell.wait(by("b").permits(2, 2).block(150));
    let behind = shell.wait(one("c").lease(50));
    shell.pass_and_tick(200);
    assert!(shell.core.queues.get(behind).is_none(), "it has its permit");
    let end = shell.ks.keys[&at].1;
    assert_eq!(end, Some(shell.now.deadline(50)), "of a lock of its own");
}

#[test]
fn a_request_for_two_is_not_overtaken_by_one_for_one() {
    let mut shell = Shell::new();
    shell.get(one("a"));
    let two = shell.wait(by("b").permits(2, 2));
    assert!(is_null(&mut shell, one("c")));
    let behind = shell.wait(one("c"));
    release(&mut shell, "a").unwrap();
    assert!(shell.core.queues.get(two).is_none());
    assert!(shell.core.queues.get(behind).is_some());
}

#[test]
fn two_that_hold_all_and_want_more_are_told() {
    let mut shell = Shell::new();
    shell.get(by("a").permits(2, 4));
    shell.get(by("b").permits(2, 4));
    shell.wait(by("a").permits(2, 4));
    let told = shell.acquire(by("b").permits(2, 4).block(0));
    assert!(matches!(told, Err(Refusal::Deadlock { .. })), "{told:?}");
}

#[test]
fn a_deadlock_that_shows_only_when_the_first_has_left_is_told_then() {
    let mut shell = Shell::new();
    shell.get(by("b").permits(2, 4));
    shell.get(by("c").permits(2, 4));
    let first = shell.wait(by("x").permits(1, 4));
    let all = shell.wait(by("h").permits(4, 4));
    let hoards = shell.wait(by("b").permits(1, 4));
    shell.core.check();
    shell
        .asks(|with| {
            let ended = crate::lock::Ended {
                db: 0,
                owner: b"c",
                client: None,
                mode: Mode::Permits,
                count: None,
                only: None,
            };
            crate::lock::release(with, b"k", &ended)
        })
        .unwrap();
    assert!(shell.core.queues.get(first).is_none());
    assert!(shell.core.queues.get(all).is_some());
    assert!(shell.core.queues.get(hoards).is_none(), "it got DEADLOCK");
}

#[test]
fn who_has_another_number_than_it_asks_for_with_once_is_told_that_and_of_no_deadlock() {
    let mut shell = Shell::new();
    shell.get(by("a").permits(2, 2));
    shell.wait(one("b"));
    shell.wait(by("c").permits(2, 2));
    let other = shell.wait(by("b").permits(2, 2).once());
    let all = shell.release_as(&key(0, "k"), "a", Mode::Permits, true);
    assert_eq!(all, Ok(0));
    let answers = shell.answers();
    let told = answers.iter().find(|(id, _)| *id == other);
    let Some((_, Outcome::Refused(Refusal::Permits { why, .. }))) = told else {
        panic!("{told:?}");
    };
    assert!(matches!(why, NoPermits::OtherShare { .. }), "{why:?}");
}

#[test]
fn who_has_what_it_asks_for_with_once_keeps_nobody_back() {
    let mut shell = Shell::new();
    shell.get(by("a").permits(2, 2));
    shell.get(one("b").on("m"));
    let first = shell.wait(by("c").permits(2, 2));
    let again = shell.wait(one("b").once());
    // The lock that it holds comes to the name for which it waits.
    let moved = shell.ks.keys.remove(&key(0, "m")).unwrap();
    shell.ks.keys.insert(key(0, "k"), moved);
    shell.renamed(&key(0, "m"), &key(0, "k"));
    shell.read_notes();
    let answers = shell.answers();
    let granted = |(id, told): &(_, _)| *id == again && matches!(told, Outcome::Granted(_));
    assert!(answers.iter().any(granted), "{answers:?}");
    assert!(shell.core.queues.get(first).is_some());
    assert_eq!(out(&shell), 1);
}

#[test]
fn the_holders_of_a_pool_that_was_found_are_read_in_parts() {
    let mut shell = Shell::new();
    let names: Vec<String> = (0..40).map(|n| format!("o{n}")).collect();
    for name in &names {
        shell.get(by(name).permits(1, 40).lease(1000));
    }
    let mut found = Shell::new();
    found.ks = shell.ks.clone();
    found.ks.parts = 8;
    found.now = shell.now;
    assert!(is_null(&mut found, by("new").permits(1, 40)));
    assert!(found.core.any_unread(), "all at once");
    for _ in 0..3 {
        found.tick();
    }
    assert!(!found.core.any_unread());
    let at = key(0, "k");
    assert_eq!(found.core.locks.shared(&at).unwrap().permits(), 40);
    found.pass_us(1_001_000, 1_001_000);
    found.tick();
    assert!(found.core.is_idle() && found.ks.keys.is_empty());
    let expired = found.told.iter();
    let expired = expired.filter(|notice| {
        matches!(
            notice,
            crate::lock::Notice::Event {
                event: Event::Expired,
                ..
            }
        )
    });
    assert_eq!(expired.count(), 40);
}

#[test]
fn a_field_that_is_no_permit_makes_it_no_lock_as_long_as_it_is_there() {
    for wrong in ["3", "x@1", "-1@5", "0@5", "1@", "1@-2", "01@5"] {
        let mut shell = Shell::new();
        shell.get(one("a"));
        let at = key(0, "k");
        let fields = |shell: &mut Shell, value: Option<&str>| {
            let Some((Value::Hash(fields), _)) = shell.ks.keys.get_mut(&at) else {
                panic!("no hash");
            };
            match value {
                Some(value) => fields.insert(b"x".to_vec(), value.into()),
                None => fields.remove(&b"x"[..]),
            };
        };
        fields(&mut shell, Some(wrong));
        let before = shell.ks.keys.clone();
        for _ in 0..2 {
            let told = shell.acquire(one("b"));
            assert!(
                matches!(told, Err(Refusal::NotALock { .. })),
                "{wrong}: {told:?}"
            );
            shell.tick();
        }
        assert_eq!(shell.ks.keys, before, "{wrong}");
        fields(&mut shell, None);
        shell.get(one("b"));
        assert_eq!(out(&shell), 2);
    }
}

#[test]
fn another_limit_is_refused_while_anybody_holds_permits() {
    let mut shell = Shell::new();
    shell.get(one("a"));
    let told = shell.acquire(by("b").permits(1, 3));
    let why = match told {
        Err(Refusal::Permits { why, .. }) => why,
        told => panic!("{told:?}"),
    };
    assert!(matches!(why, NoPermits::OtherLimit(pool) if pool.asked == 2));
}

#[test]
fn a_lowered_limit_takes_nothing_and_a_raised_one_lets_in() {
    let mut shell = Shell::new();
    let limit = |shell: &mut Shell, n| shell.step(|d| crate::lock::limit(d, 0, b"k", n));
    shell.get(one("a"));
    shell.get(one("b"));
    assert_eq!(limit(&mut shell, 1), Ok(2));
    let waits = shell.wait(one("c"));
    let more = shell.acquire(by("d").permits(2, 2).block(0));
    assert!(matches!(more, Err(Refusal::Permits { .. })), "{more:?}");
    release(&mut shell, "a").unwrap();
    assert!(shell.core.queues.get(waits).is_some(), "one is out of one");
    assert_eq!(limit(&mut shell, 3), Ok(1));
    assert!(shell.core.queues.get(waits).is_none());
    shell.core.check();
}

#[test]
fn who_is_refused_for_a_lowered_limit_keeps_nobody_else_from_being_judged() {
    let mut shell = Shell::new();
    let limit = |shell: &mut Shell, n| shell.step(|d| crate::lock::limit(d, 0, b"k", n));
    shell.get(one("a"));
    shell.get(one("b"));
    let more = shell.wait(by("c").permits(2, 2));
    assert_eq!(limit(&mut shell, 3), Ok(2));
    let hoards = shell.wait(one("a"));
    assert_eq!(limit(&mut shell, 1), Ok(3));
    shell.tick();
    assert!(shell.core.queues.get(more).is_none());
    assert!(shell.core.queues.get(hoards).is_none());
}

#[test]
fn renew_gives_a_key_an_end_that_somebody_has_persisted() {
    let mut shell = Shell::new();
    let at = key(0, "k");
    shell.get(one("a").lease(500));
    shell.get(one("b").lease(900));
    let persist = |shell: &mut Shell| shell.ks.keys.get_mut(&at).unwrap().1 = None;
    persist(&mut shell);
    shell.renew_as(&at, "a", Mode::Permits, 100).unwrap();
    let end = shell.ks.keys[&at].1;
    assert_eq!(end, Some(shell.now.deadline(900)), "that of the longest");
}

#[test]
fn what_is_left_of_permits_that_somebody_has_taken_away_is_free() {
    let mut shell = Shell::new();
    let at = key(0, "k");
    shell.get(one("a"));
    let waits = shell.wait(by("b").permits(2, 2));
    for value in [Some("3"), None] {
        let Some((Value::Hash(fields), _)) = shell.ks.keys.get_mut(&at) else {
            panic!("no hash");
        };
        match value {
            Some(value) => fields.insert(b"a".to_vec(), value.into()),
            None => fields.remove(&b"a"[..]),
        };
        shell.changed(&at, crate::lock::Cause::Unknown);
        shell.read_notes();
    }
    assert!(shell.core.queues.get(waits).is_none(), "it has them");
    assert_eq!(out(&shell), 2);
}
