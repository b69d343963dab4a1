//! Nobody is refused for a cycle that is none: what others took away or took
//! themselves holds nobody up, whether it was heard of or not.

use std::collections::BTreeMap;

use super::shell::{by, key, Shell};
use crate::lock::memory::Value;
use crate::lock::{Mode, Outcome, Verdict, WaiterId};

/// `a` waits for `c`, which `b` holds; `b` waits for `a`, which another one holds.
fn chain(s: &mut Shell) -> (WaiterId, WaiterId) {
    s.get(by("other").on("a"));
    s.get(by("b").on("c"));
    let for_c = s.wait(by("a").on("c"));
    let for_a = s.wait(by("b").on("a"));
    s.told.clear();
    (for_c, for_a)
}

fn only_granted(s: &mut Shell, id: WaiterId) {
    match &s.answers()[..] {
        [(who, Outcome::Granted(_))] if *who == id => {}
        other => panic!("{id:?} was to be granted: {other:?}"),
    }
}

#[test]
fn a_flush_that_takes_several_locks_leaves_no_cycle() {
    let mut s = Shell::new();
    let (for_c, _) = chain(&mut s);
    s.flush(None);
    s.script_takes(&key(0, "a"), "a", 1000);
    s.read_notes();
    only_granted(&mut s, for_c);
}

#[test]
fn neither_do_keys_deleted_one_by_one() {
    for order in [["a", "c"], ["c", "a"]] {
        let mut s = Shell::new();
        let (for_c, _) = chain(&mut s);
        for name in order {
            s.del(&key(0, name));
            if name == "a" {
                s.script_takes(&key(0, name), "a", 1000);
            }
        }
        s.read_notes();
        only_granted(&mut s, for_c);
    }
}

/// A script gives the lock to another owner in one step, of which nothing is heard.
fn swapped(s: &mut Shell, name: &str, owner: &str) {
    let (value, _) = s.ks.keys.get_mut(&key(0, name)).expect("it is held");
    *value = Value::Hash(BTreeMap::from([(owner.into(), b"1".to_vec())]));
}

#[test]
fn a_lock_that_changed_hands_unheard_is_no_part_of_one() {
    let mut s = Shell::new();
    s.get(by("a").on("a"));
    s.get(by("b").on("b"));
    s.wait(by("a").on("b"));
    // Now nobody waits for b's owner.
    swapped(&mut s, "b", "script");
    assert!(matches!(
        s.acquire(by("b").on("a").block(0)),
        Ok(Verdict::Waits(_))
    ));
    s.release_on(&key(0, "a"), "a", false).unwrap();
}

#[test]
fn who_took_a_lock_unheard_is_waited_for() {
    let mut s = Shell::new();
    s.get(by("a").on("a"));
    s.get(by("other").on("b"));
    s.wait(by("b").on("a"));
    swapped(&mut s, "b", "b");
    assert!(s.acquire(by("a").on("b").block(0)).is_err());
}

#[test]
fn nobody_is_refused_where_another_order_is_a_way_out() {
    let mut s = Shell::new();
    s.get(by("a").on("r").write());
    s.get(by("a").on("k"));
    let read = [
        s.wait(by("b").on("r").read()),
        s.wait(by("c").on("r").read()),
    ];
    s.wait(by("b").on("k"));
    s.wait(by("b").on("r").write());
    s.wait(by("c").on("k"));
    s.told.clear();
    // b waits for c to leave r then, and c behind b for k: c goes first.
    s.release_as(&key(0, "r"), "a", Mode::Write, false).unwrap();
    let granted: Vec<WaiterId> = s.answers().iter().map(|(id, _)| *id).collect();
    assert_eq!(granted, read);
    let order = s.core.waiters_of(s.now, &key(0, "k"), 10);
    let order: Vec<&[u8]> = order.iter().map(|waiter| &*waiter.owner).collect();
    assert_eq!(order, [b"c", b"b"]);
}

/// a goes before c, first with the one of its waits, then with the other.
#[test]
fn who_goes_before_another_later_comes_behind_those_who_did_so_sooner() {
    let mut s = Shell::new();
    s.get(by("b").on("j k"));
    s.wait(by("a").on("j"));
    s.wait(by("c").on("j r"));
    let for_j = s.wait(by("a").on("j k").from(2));
    s.release_on(&key(0, "j"), "b", false).unwrap();
    let for_r = s.wait(by("a").on("k r"));
    s.release_on(&key(0, "j"), "a", false).unwrap();
    let queue = &s.core.queues.line(&key(0, "k")).queue;
    assert_eq!(queue.ids().collect::<Vec<WaiterId>>(), [for_r, for_j]);
}

#[test]
fn of_two_readers_that_want_to_write_the_one_who_asked_last_is_refused() {
    let mut s = Shell::new();
    s.get(by("a").on("r").write());
    for owner in ["c", "b"] {
        s.wait(by(owner).on("r").read());
    }
    let [first, second] = ["c", "b"].map(|owner| s.wait(by(owner).on("r").write()));
    s.told.clear();
    s.release_as(&key(0, "r"), "a", Mode::Write, false).unwrap();
    let refused =
        |(id, outcome): &(WaiterId, Outcome)| matches!(outcome, Outcome::Refused(_)).then_some(*id);
    let refused: Vec<WaiterId> = s.answers().iter().filter_map(refused).collect();
    assert_eq!(refused, [second]);
    s.release_as(&key(0, "r"), "b", Mode::Read, false).unwrap();
    only_granted(&mut s, first);
}

#[test]
fn a_wait_whose_time_is_over_is_no_part_of_one() {
    let mut s = Shell::new();
    s.get(by("a").on("a"));
    s.get(by("b").on("b"));
    s.wait(by("a").on("b").block(20));
    s.pass(25);
    // The timer has not fired yet.
    assert!(matches!(
        s.acquire(by("b").on("a").block(0)),
        Ok(Verdict::Waits(_))
    ));
}

/// They leave in slices, and the cycle is judged behind them.
#[test]
fn a_cycle_is_found_when_very_many_waits_whose_time_is_over_have_left() {
    let mut s = Shell::new();
    s.get(by("a").on("a"));
    s.get(by("b").on("b"));
    s.get(by("other"));
    for _ in 0..1000 {
        s.wait(by("late").block(20));
    }
    let first = s.wait(by("a").on("b"));
    s.pass(25);
    let last = s.wait(by("b").on("a"));
    assert!(
        (500..1000).contains(&s.core.waiting()),
        "{}",
        s.core.waiting()
    );
    s.told.clear();
    s.read_notes();
    let refused = |(_, outcome): &&(WaiterId, Outcome)| matches!(outcome, Outcome::Refused(_));
    let answers = s.answers();
    let refused: Vec<_> = answers.iter().filter(refused).map(|(id, _)| *id).collect();
    assert_eq!(refused, [last]);
    assert!(s.core.queues.get(first).is_some());
    assert_eq!(s.core.waiting(), 1);
}

#[test]
fn a_watched_hold_that_only_stood_still_is_part_of_one() {
    let mut s = Shell::new();
    s.get(by("a").on("a").lease(30).watched());
    s.get(by("b").on("b"));
    s.wait(by("a").on("b"));
    s.pass(40);
    assert!(s.acquire(by("b").on("a").block(0)).is_err());
}

#[test]
fn a_hold_that_is_over_is_no_use_to_its_own_owner_either() {
    let mut s = Shell::new();
    s.get(by("b").on("k").lease(30));
    s.get(by("b").on("z"));
    s.get(by("c").on("y"));
    s.get(by("other").on("x"));
    s.wait(by("d").on("k y"));
    s.wait(by("b").on("k x"));
    s.pass(40);
    // That k is free has not been heard. b waits for it behind d, and d for c.
    assert!(s.acquire(by("c").on("z").block(0)).is_err());
}

/// An owner that holds a key stands behind nobody who waits for it; without the hold it does.
#[test]
fn who_loses_a_hold_may_come_to_stand_behind_one_who_waits_for_another_of_its_holds() {
    let ends: [fn(&mut Shell); 6] = [
        |s| drop(s.release_on(&key(0, "k"), "c", false)),
        |s| drop(s.release_many("k", "c")),
        |s| drop(s.force_on(&key(0, "k"))),
        |s| s.pass_and_tick(60),
        |s| s.del(&key(0, "k")),
        |s| s.rename(&key(0, "k"), &key(0, "elsewhere")),
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut s = Shell::new();
        s.get(by("b").on("r").read());
        s.get(by("c").on("j"));
        s.get(by("c").on("k").lease(50));
        let first = s.wait(by("a").on("j k"));
        let last = s.wait(by("c").on("k r"));
        s.told.clear();
        end(&mut s);
        s.read_notes();
        let refused = |(_, outcome): &&(WaiterId, Outcome)| matches!(outcome, Outcome::Refused(_));
        let answers = s.answers();
        let refused: Vec<_> = answers.iter().filter(refused).map(|(id, _)| *id).collect();
        assert_eq!((number, refused), (number, vec![]));
        s.release_as(&key(0, "r"), "b", Mode::Read, false).unwrap();
        assert!(s.core.queues.get(last).is_none(), "{number}");
        assert!(s.core.queues.get(first).is_some(), "{number}");
    }
}
