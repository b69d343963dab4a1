//! Where very many wait or hold, a request costs no more than what it asks for: eight
//! times as many cost about eight times as much, and sixty-four times if the cost grows
//! with the square.

use std::fs;
use std::time::Duration;

use super::shell::{by, key, Request, Shell};
use crate::lock::kind::permits::hoards::{forget_hoards, hoarded};
use crate::lock::{self, ClientId, Ended, Mode, Note};

const FEW: usize = 1_000;
const MANY: usize = 8 * FEW;

/// For how long this thread has had a processor: what else the machine does takes none
/// of that.
pub fn spent() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns = text.split(' ').next().unwrap();
    Duration::from_nanos(ns.parse().unwrap())
}

/// Asserts that the cost grows as the number does. The least of some runs counts: what
/// shares the caches makes single ones longer.
pub fn grows_no_faster(run: impl Fn(usize) -> Duration) {
    // The kernel counts at its ticks: what takes less is not seen.
    let tick = Duration::from_millis(10);
    let least = |count| (0..3).map(|_| run(count)).min().unwrap().max(tick);
    let (few, many) = (least(FEW), least(MANY));
    assert!(many < few * 24, "{few:?} for {FEW}, {many:?} for {MANY}");
}

pub fn names(count: usize) -> Vec<String> {
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

#[test]
fn the_many_requests_of_an_owner_whose_connection_closes_leave_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        for name in &names {
            s.wait(by("process").on(name).from(1_000_001));
        }
        let began = spent();
        s.notes
            .push(Note::Closed(ClientId::new(1_000_001).unwrap()));
        while s.core.waiting() > 0 || s.core.next_inquiry().is_some() {
            s.pass_us(0, 1_000_000_000);
            s.tick();
        }
        spent() - began
    });
}

#[test]
fn each_of_an_owners_many_requests_is_called_off_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        for name in &names {
            s.wait(by("process").on(name));
        }
        let began = spent();
        for name in &names {
            s.note(|d| lock::cancel(d, 0, name.as_bytes(), b"process", None));
        }
        s.read_notes();
        assert_eq!(s.core.waiting(), 0);
        spent() - began
    });
}

/// For each of them two others wait, and it is granted them one by one.
#[test]
fn an_owner_with_many_requests_is_granted_each_at_once() {
    grows_no_faster(|count| {
        let names = names(count / 8);
        let mut s = held(&names);
        for name in &names {
            s.wait(by("process").on(name));
            s.wait(by(&format!("next {name}")).on(name));
        }
        let began = spent();
        for name in &names {
            s.release_on(&key(0, name), "other", false).unwrap();
        }
        spent() - began
    });
}

/// Many readers hold a lock and wait to read another, behind one who waits to write that.
#[test]
fn of_many_readers_who_wait_too_each_is_come_to_once() {
    let names = names(FEW);
    let mut s = Shell::new();
    s.get(by("other").on("b").read());
    for name in &names {
        s.get(by(name).on("a").read());
    }
    s.wait(by("writer").on("b").write());
    for name in &names {
        s.wait(by(name).on("b").read());
    }
    // No cycle, and then one.
    s.get(by("last").on("own"));
    for (owner, refused) in [("last", 0), ("other", 1)] {
        s.told.clear();
        s.wait(by(owner).on("a").write());
        s.wait(by("behind").on("own"));
        let before = s.ks.looks;
        s.piece_us = 2000;
        let mut turns = 0;
        while s.core.next_inquiry().is_some() {
            s.pass_us(0, 1_000_000_000);
            s.tick();
            turns += 1;
        }
        s.piece_us = 0;
        assert_eq!(s.answers().len(), refused);
        assert!(s.ks.looks - before < 100);
        // Each turn goes 256 steps.
        assert!(turns <= names.len() * 10 / 256 + 10, "{turns} turns");
    }
}

#[test]
fn many_owners_wait_in_two_places_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&["one".into(), "two".into()]);
        let began = spent();
        for at in ["one", "two"] {
            for name in &names {
                s.wait(by(name).on(at));
            }
        }
        spent() - began
    });
}

/// All of them hold permits and wait for more.
#[test]
fn of_many_who_wait_for_permits_in_vain_the_newest_is_found_at_once() {
    let names = names(FEW);
    let limit = u32::try_from(names.len()).unwrap();
    let mut s = Shell::new();
    s.core.rules.detect_deadlocks = false;
    for name in &names {
        s.get(by(name).permits(1, limit));
    }
    let waits: Vec<_> = names
        .iter()
        .map(|name| s.wait(by(name).permits(1, limit)))
        .collect();
    let newest = |s: &mut Shell| {
        s.core.rules.detect_deadlocks = true;
        forget_hoards(&mut s.core, &key(0, "k"));
        hoarded(&s.core, &key(0, "k")).map(|(id, _)| id)
    };
    assert_eq!(newest(&mut s), waits.last().copied());
    // Marks that are not true any more are gone for good when they were met once.
    for name in &names[1..] {
        s.core.rules.detect_deadlocks = false;
        s.release_as(&key(0, "k"), name, Mode::Permits, true)
            .unwrap();
    }
    assert_eq!(newest(&mut s), None);
    assert!(s.core.queues.line(&key(0, "k")).hoarders.len() < 2);
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

#[test]
fn an_owner_nests_very_many_holds_that_are_told_of_and_renews_them() {
    grows_no_faster(|count| {
        let mut s = Shell::new();
        let tags = names(count);
        let began = spent();
        for tag in &tags {
            s.get(by("a").from(1).tag(tag));
            s.renew("a", 1_000_000).unwrap();
        }
        let spent = spent() - began;
        s.core.check();
        spent
    });
}

/// One connection after the other takes some of an owner's holds, and they are released one by one.
#[test]
fn an_owner_releases_very_many_holds_that_are_told_of_one_by_one() {
    for (watched, by_another) in [(false, false), (true, false), (false, true), (true, true)] {
        grows_no_faster(|count| {
            let mut s = Shell::new();
            for tag in &names(count) {
                let request = by("a").from(1).tag(tag);
                s.get(if watched { request.watched() } else { request });
            }
            let ended = Ended {
                db: 0,
                owner: b"a",
                client: ClientId::new(if by_another { 2 } else { 1 }),
                mode: Mode::Exclusive,
                count: Some(1),
                only: None,
            };
            let began = spent();
            for _ in 0..count {
                s.asks(|with| lock::release(with, b"k", &ended)).unwrap();
            }
            let spent = spent() - began;
            s.core.check();
            spent
        });
    }
}

#[test]
fn of_a_request_for_many_keys_few_are_looked_at_as_they_come_free_one_by_one() {
    let backwards = |count: usize| (0..count).rev().collect::<Vec<_>>();
    let forwards = |count: usize| (0..count).collect::<Vec<_>>();
    let mixed = |count: usize| (0..count).map(|n| n * 7 % count).collect::<Vec<_>>();
    for order in [
        &backwards as &dyn Fn(usize) -> Vec<usize>,
        &forwards,
        &mixed,
    ] {
        let count = 400;
        let all = &names(count)[..count];
        let mut s = held(all);
        let id = s.wait(by("first").on(&all.join(" ")));
        let before = s.ks.looks;
        for number in order(count) {
            assert!(s.core.queues.get(id).is_some());
            let freed = key(0, &all[number]);
            s.release_on(&freed, "other", false).unwrap();
        }
        assert!(s.core.queues.get(id).is_none(), "it has them all");
        let looks = s.ks.looks - before;
        assert!(looks <= 16 * count, "{looks} looks at {count} keys");
    }
}
