//! Who counts as somebody who waits for what a silent session has.

use super::super::shell::{by, key, Shell};
use super::{client, held, is_granted, lost, ONE, OTHER};
use crate::lock::{self, Listening, Notice, Reason};

#[test]
fn an_owner_does_not_wait_for_itself() {
    let mut s = Shell::new();
    s.heard(ONE, 100);
    s.get(by("a").permits(1, 2).lease(100).watched().from(ONE));
    s.get(by("c").permits(1, 2).lease(100_000));
    s.wait(by("a").permits(1, 2).from(OTHER));
    s.goes_on(1000);
    assert_eq!(lost(&mut s), []);
}

#[test]
fn who_would_not_hear_of_a_grant_is_nobody() {
    for another in [false, true] {
        let mut s = held();
        s.wait(by("b").from(OTHER).tag("t").queue(0));
        let c = another.then(|| s.wait(by("c")));
        s.ks.deaf.insert(client(OTHER));
        s.goes_on(310);
        let holder = if another { "c" } else { "a" };
        assert_eq!(s.holder().as_deref(), Some(holder));
        assert!(c.is_none_or(|c| is_granted(&s, c)));
        assert!(s.core.queues.is_empty(), "its wait has ended");
    }
}

#[test]
fn those_who_wait_by_subscription_are_somebody_if_they_listen() {
    for listens in [false, true] {
        let mut s = held();
        s.core.rules.redisson_yield_us = Some(50_000);
        s.goes_on(310);
        let k = key(0, "k");
        let asks = |s: &Shell| {
            let mut told = s.told.iter();
            told.any(|n| matches!(n, Notice::WhoListens { key, .. } if *key == k))
        };
        assert!(asks(&s));
        let found = match listens {
            true => Listening::Waiting { shared: false },
            false => Listening::Nobody,
        };
        s.told.clear();
        lock::attend(&mut s.decider(), [(k.clone(), found)]);
        assert_eq!(s.holder().is_none(), listens);
        let losses = usize::from(listens);
        assert_eq!(lost(&mut s), [(client(ONE), Reason::Silent)][..losses]);
    }
}
