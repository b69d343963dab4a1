//! The loop of what is due: what it does on which occasion, and how much at a time.

use super::shell::{answers, by, events, key, Shell};
use crate::lock::memory::Value;
use crate::lock::{end_few, Cause, ClientId, Due, Event, Gate, Notice, Occasion, Outcome};

/// Somebody holds so many locks, each by a connection of its own.
fn held(count: usize, watched: bool) -> Shell {
    let mut s = Shell::new();
    for number in 0..count {
        let name = number.to_string();
        let request = by("a").on(&name);
        s.get(if watched { request.watched() } else { request });
    }
    s.told.clear();
    s
}

/// The connections that are to be closed, as was told since somebody last asked.
fn closed(s: &mut Shell) -> Vec<ClientId> {
    let told = std::mem::take(&mut s.told).into_iter();
    let closed = told.filter_map(|notice| match notice {
        Notice::Lost(loss) => loss.watcher,
        _ => None,
    });
    closed.collect()
}

#[test]
fn a_command_hears_the_notes_and_the_timer_looks_at_the_keys() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.del(&key(0, "k"));
    s.run(Occasion::Command);
    assert!(s.notes.is_empty() && s.core.has_due());
    assert_eq!(s.answers(), []);
    s.run(Occasion::Timer);
    assert!(matches!(s.answers()[..], [(id, Outcome::Granted(_))] if id == b));
}

#[test]
fn waits_end_and_nothing_else_while_the_gate_is_not_open() {
    let mut s = Shell::new();
    s.get(by("a"));
    let late = s.wait(by("b").block(500));
    let next = s.wait(by("c"));
    s.pass(1001);
    s.told.clear();
    s.gate = Gate::Waking;
    s.tick();
    assert_eq!(s.answers(), [(late, Outcome::TimedOut)]);
    s.gate = Gate::Open;
    s.tick();
    assert!(matches!(s.answers()[..], [(id, Outcome::Granted(_))] if id == next));
}

#[test]
fn notes_stay_where_they_are_while_the_gate_is_not_open() {
    let mut s = held(1, false);
    s.del(&key(0, "0"));
    for gate in [Gate::Waking, Gate::Shut] {
        s.gate = gate;
        s.run(Occasion::Timer);
        assert_eq!(s.notes.len(), 1);
    }
}

#[test]
fn long_work_is_done_in_slices() {
    let mut s = held(200, false);
    s.pass(1001);
    s.piece_us = 1000;
    s.tick();
    // Two batches take as long as a slice may.
    assert_eq!(s.events().len(), 64);
    s.tick();
    assert_eq!(s.events().len(), 64);
    s.piece_us = 0;
    s.tick();
    assert_eq!(s.events().len(), 72);
    assert!(s.core.is_idle());
}

/// Each class has more to do than a piece, and a piece takes longer than a turn may. All are done in
/// as many turns as the largest would take alone.
#[test]
fn no_class_of_what_is_due_waits_for_another_to_be_done() {
    const MANY: usize = 100;
    let mut s = Shell::new();
    for number in 0..MANY {
        s.get(by("a").on(&format!("waits-{number}")).lease(60_000));
        s.wait(by("b").on(&format!("waits-{number}")).block(1000));
        s.get(by("c").on(&format!("heard-{number}")).lease(60_000));
        s.get(by("d").on(&format!("ends-{number}")).lease(1000));
        s.get(
            by("e")
                .on(&format!("renewed-{number}"))
                .lease(3000)
                .watched(),
        );
    }
    s.pass(1500);
    for number in 0..MANY {
        s.changed(&key(0, &format!("heard-{number}")), Cause::Unknown);
    }
    let classes = [Due::TimesOut, Due::Renewals, Due::Ends];
    let begun = classes.map(|due| due.next(&s.core));
    assert!(begun.iter().all(Option::is_some));
    s.piece_us = 10_000;
    let turns = MANY.div_ceil(32);
    for turn in 1..=turns {
        s.tick();
        let waiting = MANY.saturating_sub(32 * turn);
        assert_eq!(s.core.waiting(), waiting);
        assert_eq!(s.core.locks.due(s.now, MANY).len(), waiting);
        assert_eq!(s.core.watchdogs.due(s.now, MANY).len(), waiting);
        assert_eq!(s.core.has_due(), waiting > 0);
    }
    assert!(!Due::any_now(&s.core));
}

#[test]
fn a_few_leases_end_at_the_start_of_a_command_that_comes_when_the_timer_is_late() {
    let mut s = held(10, false);
    let next = s.wait(by("b").on("3"));
    s.pass(1000);
    s.told.clear();
    let mut answered = Vec::new();
    let mut ended = |s: &mut Shell| {
        end_few(&mut s.decider());
        let told = std::mem::take(&mut s.told);
        answered.extend(answers(&told));
        let of_leases = |(_, event): &&(_, Event)| *event == Event::Expired;
        events(&told).iter().filter(of_leases).count()
    };
    assert_eq!(ended(&mut s), 0);
    s.pass(1);
    for count in [4, 4, 2, 0] {
        assert_eq!(ended(&mut s), count);
    }
    assert!(matches!(answered[..], [(id, Outcome::Granted(_))] if id == next));
}

#[test]
fn no_lease_ends_before_those_have_left_whose_connections_are_closed() {
    let mut s = held(2, false);
    let id = s.wait(by("b").on("0"));
    s.pass(1001);
    s.told.clear();
    s.core.gone.push_back(id);
    end_few(&mut s.decider());
    assert_eq!(s.events(), []);
    s.core.gone = Default::default();
    end_few(&mut s.decider());
    assert!(!s.events().is_empty());
}

/// Of waits and leases that are due at once each goes on, and all of it takes no longer than a
/// turn may, to a batch.
#[test]
fn all_kinds_of_work_share_one_turn() {
    let mut s = held(300, false);
    for number in 0..300 {
        s.wait(by("b").on(&number.to_string()).block(500));
    }
    s.pass(1001);
    s.told.clear();
    s.piece_us = 300;
    s.tick();
    // Half of a turn for the first kind, and half of what the others have left. Who is late,
    // and next, is found so when the lease before it ends.
    let is_over = |(_, outcome): &(_, Outcome)| *outcome == Outcome::TimedOut;
    let over = answers(&s.told);
    let over = over.iter().filter(|answer| is_over(answer)).count();
    let leases = s.events().len();
    assert!((1..=3 * 32).contains(&leases), "{leases}");
    assert!((5 * 32..=5 * 32 + leases).contains(&over), "{over}");
}

#[test]
fn all_who_watch_a_lease_that_is_over_are_closed_once_behind_the_gate() {
    let mut s = held(100, true);
    s.pass(1001);
    s.lapse();
    let mut all = closed(&mut s);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 100);
    s.lapse();
    assert_eq!(closed(&mut s), []);
}

/// Redis 7.0 does not tell.
#[test]
fn an_overwritten_lock_that_is_watched_is_found_within_a_tenth_of_a_second() {
    for misses in [true, false] {
        let mut s = held(1, true);
        s.misses_overwrites = misses;
        s.tick();
        let text = (Value::Text, None);
        s.ks.keys.insert(key(0, "0"), text);
        s.pass_and_tick(99);
        assert_eq!(closed(&mut s), []);
        s.pass_and_tick(1);
        assert_eq!(s.core.has_due(), misses);
        s.tick();
        assert_eq!(closed(&mut s).len(), usize::from(misses));
    }
}

#[test]
fn a_watched_lease_that_ran_out_in_a_stall_is_written_anew_where_overwrites_are_missed() {
    let mut s = held(1, true);
    s.misses_overwrites = true;
    s.tick();
    s.pass_and_tick(1500);
    assert_eq!(closed(&mut s), []);
    assert!(s.ks.keys.contains_key(&key(0, "0")));
}
