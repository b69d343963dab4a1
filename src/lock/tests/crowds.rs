//! Where very many wait or hold, a request costs no more than what it asks for: eight
//! times as many cost about eight times as much, and sixty-four times if the cost grows
//! with the square.

use std::fs;
use std::time::Duration;

use super::shell::{by, key, Request, Shell};
use crate::lock::{ClientId, Mode, Note};

const FEW: usize = 1_000;
const MANY: usize = 8 * FEW;

/// For how long this thread has had a processor: what else the machine does takes none
/// of that.
fn spent() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns = text.split(' ').next().unwrap();
    Duration::from_nanos(ns.parse().unwrap())
}

/// Asserts that the cost grows as the number does. The least of some runs counts: what
/// shares the caches makes single ones longer.
fn grows_no_faster(run: impl Fn(usize) -> Duration) {
    let least = |count| (0..3).map(|_| run(count)).min().unwrap();
    let (few, many) = (least(FEW), least(MANY));
    assert!(many < few * 24, "{few:?} for {FEW}, {many:?} for {MANY}");
}

fn names(count: usize) -> Vec<String> {
    (0..=count).map(|number| format!("k{number}")).collect()
}

/// Somebody else holds all of them.
fn held(names: &[String]) -> Shell {
    let mut s = Shell::new();
    for name in names {
        s.get(by("other").on(name));
    }
    s
}

#[test]
fn of_an_owner_with_many_requests_one_is_granted_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        let began = spent();
        for name in &names {
            s.wait(by("process").on(name));
        }
        let middle = &names[count / 2];
        s.wait(by("next").on(middle));
        s.told.clear();
        s.release_on(&key(0, middle), "other", false).unwrap();
        assert_eq!(s.answers().len(), 1);
        spent() - began
    });
}

#[test]
fn the_many_requests_of_an_owner_leave_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        let began = spent();
        let pairs = names.windows(2).map(|pair| pair.join(" "));
        let ids: Vec<_> = pairs.map(|pair| s.wait(by("process").on(&pair))).collect();
        for id in ids {
            crate::lock::leave(&mut s.core, id);
        }
        s.tick();
        spent() - began
    });
}

#[test]
fn the_many_requests_of_an_owner_have_their_places_again_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        s.core.rules.keep_place = Some(15_000);
        let request = |name, from| by("process").once().on(name).from(from);
        for name in &names {
            s.wait(request(name, 1_000_001));
        }
        s.notes
            .push(Note::Closed(ClientId::new(1_000_001).unwrap()));
        while s.core.waiting() > 0 {
            s.tick();
        }
        let began = spent();
        for name in &names {
            s.wait(request(name, 1_000_002));
        }
        spent() - began
    });
}

/// How often keys are looked at when all keys but one of a request that waits are
/// released at once, and when another one behind it gives up.
fn looks(count: usize) -> [usize; 2] {
    let names = names(count);
    let (all, but_one) = (names.join(" "), names[..count].join(" "));
    let mut s = held(&names);
    s.wait(by("first").on(&all));
    let second = s.wait(by("second").on(&all));
    let before = s.ks.looks;
    s.release_many(&but_one, "other").unwrap();
    s.read_notes();
    let released = s.ks.looks - before;
    crate::lock::leave(&mut s.core, second);
    s.read_notes();
    assert!(s.answers().is_empty());
    [released, s.ks.looks - before - released]
}

#[test]
fn nobody_is_tried_behind_one_who_has_it_alone() {
    let looks = |mode, behind: &[&str]| {
        let mut s = Shell::new();
        let ask = |owner| Request { mode, ..by(owner) };
        s.get(ask("holder"));
        s.wait(ask("next"));
        for owner in behind {
            s.wait(ask(owner));
        }
        let before = s.ks.looks;
        s.release_as(&key(0, "k"), "holder", mode, false).unwrap();
        assert_eq!(s.answers().len(), 1);
        s.ks.looks - before
    };
    for mode in [Mode::Exclusive, Mode::Write] {
        assert_eq!(looks(mode, &[]), looks(mode, &["third", "fourth"]));
    }
}

#[test]
fn a_request_is_tried_once_however_many_of_its_keys_are_released() {
    let (few, many) = (looks(100), looks(800));
    for (few, many) in few.into_iter().zip(many) {
        assert!(
            many <= 8 * few + 100,
            "{few} looks for 100 keys, {many} for 800"
        );
    }
}
