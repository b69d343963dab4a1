//! Connections that say that they are alive, and are silent then.

mod somebody;

use super::shell::{by, key, Shell};
use crate::lock::{self, ClientId, Event, Gate, Note, Notice, Outcome, Reason, Slot, WaiterId};

const ONE: u64 = 1001;
const OTHER: u64 = 1002;

fn client(number: u64) -> ClientId {
    ClientId::new(number).unwrap()
}

impl Shell {
    fn heard(&mut self, number: u64, patience: i64) {
        let now = self.now;
        lock::heartbeat(&mut self.core, client(number), patience, now);
    }

    /// The timer fires every so many ms, for so long.
    fn goes_on(&mut self, ms: i64) {
        for _ in 0..ms / 10 {
            self.pass_and_tick(10);
        }
    }

    /// The same, and a connection says all the while that it is alive.
    fn goes_on_with(&mut self, number: u64, patience: i64, ms: i64) {
        for _ in 0..ms / 10 {
            self.pass(10);
            self.heard(number, patience);
            self.tick();
        }
    }

    fn holder(&mut self) -> Option<String> {
        self.held().map(|(owner, ..)| owner)
    }
}

/// The losses since somebody last asked.
fn lost(s: &mut Shell) -> Vec<(ClientId, Reason)> {
    let told = std::mem::take(&mut s.told).into_iter();
    let losses = told.filter_map(|notice| match notice {
        Notice::Lost(loss) => Some((loss.watcher.unwrap(), loss.reason)),
        _ => None,
    });
    losses.collect()
}

fn is_granted(s: &Shell, id: WaiterId) -> bool {
    s.told.iter().any(|notice| {
        matches!(notice, Notice::Answer { waiter, outcome: Outcome::Granted(_), .. } if *waiter == id)
    })
}

/// One that holds `k` by a lease of 100 ms, and may be silent for 300.
fn held() -> Shell {
    let mut s = Shell::new();
    s.heard(ONE, 300);
    s.get(by("a").lease(100).watched().from(ONE));
    s.told.clear();
    s
}

#[test]
fn who_is_silent_loses_what_somebody_waits_for_in_the_step_in_which_that_is_granted() {
    let mut s = held();
    let b = s.wait(by("b"));
    s.goes_on(290);
    assert_eq!(s.holder().as_deref(), Some("a"));
    s.told.clear();
    s.pass_and_tick(10);
    assert!(is_granted(&s, b));
    let events = super::shell::events(&s.told);
    assert_eq!(
        events.iter().map(|(_, event)| *event).collect::<Vec<_>>(),
        [Event::Released, Event::Acquired]
    );
    assert_eq!(lost(&mut s), [(client(ONE), Reason::Silent)]);
    let stats = s.core.counters.lost.get(&Reason::Silent);
    assert_eq!(stats, Some(&1));
    assert!(!s.core.is_watching());
}

#[test]
fn who_says_that_it_is_alive_loses_nothing() {
    let mut s = held();
    s.wait(by("b"));
    s.goes_on_with(ONE, 300, 2000);
    assert_eq!(s.holder().as_deref(), Some("a"));
}

#[test]
fn who_never_says_it_is_never_silent() {
    let mut s = Shell::new();
    s.heard(OTHER, 10);
    s.get(by("a").lease(100).watched().from(ONE));
    s.wait(by("b"));
    s.goes_on(2000);
    assert_eq!(s.holder().as_deref(), Some("a"));
    assert_eq!(lost(&mut s), []);
}

#[test]
fn while_nobody_waits_nothing_is_lost_and_who_comes_then_has_it() {
    let mut s = held();
    s.goes_on(2000);
    assert_eq!(lost(&mut s), []);
    let b = s.wait(by("b"));
    s.goes_on(100);
    assert!(is_granted(&s, b));
}

#[test]
fn who_is_heard_of_again_before_somebody_waits_has_lost_nothing() {
    let mut s = held();
    s.goes_on(2000);
    s.heard(ONE, 300);
    s.wait(by("b"));
    s.goes_on(290);
    assert_eq!(s.holder().as_deref(), Some("a"));
    s.goes_on(20);
    assert_eq!(s.holder().as_deref(), Some("b"));
}

#[test]
fn a_lease_that_was_asked_for_is_not_shortened() {
    let mut s = Shell::new();
    s.heard(ONE, 100);
    s.get(by("a").lease(1000).watched().from(ONE));
    s.wait(by("b"));
    s.goes_on(500);
    s.renew("a", 800).unwrap();
    s.goes_on(800);
    assert_eq!(s.holder().as_deref(), Some("a"));
    s.goes_on(110);
    assert_eq!(s.holder().as_deref(), Some("b"));
}

#[test]
fn holds_that_no_watchdog_keeps_are_not_touched() {
    let mut s = Shell::new();
    s.heard(ONE, 100);
    s.get(by("a").lease(100).watched().from(ONE));
    s.get(by("a").lease(3000).from(ONE));
    s.wait(by("b"));
    s.goes_on(1000);
    assert_eq!(
        s.held().map(|(owner, holds, _)| (owner, holds)),
        Some(("a".into(), 1))
    );
    assert_eq!(lost(&mut s), [(client(ONE), Reason::Silent)]);
    s.goes_on(3000);
    assert_eq!(s.holder().as_deref(), Some("b"));
}

#[test]
fn a_stall_of_the_server_takes_no_lock_from_who_is_alive() {
    // The shorter one would be over, if it were not read first what came meanwhile.
    for patience in [150, 300] {
        for stall in [151, 299, 301, 5_000, 3_600_000] {
            for ticks_first in [true, false] {
                outlives_a_stall(patience, stall, ticks_first);
            }
        }
    }
}

fn outlives_a_stall(patience: i64, stall: i64, ticks_first: bool) {
    let show = format!("{patience} {stall} {ticks_first}");
    let mut s = Shell::new();
    s.heard(ONE, patience);
    s.get(by("a").lease(10_000_000).watched().from(ONE));
    // What was asked for is over long since.
    s.core.locks.change_hold(&key(0, "k"), b"a", |hold| {
        hold.watch.as_mut().unwrap().asked = lock::WallMs(0);
    });
    s.wait(by("b"));
    s.goes_on_with(ONE, patience, 200);
    s.pass(100);
    s.pass(stall);
    // The timer may fire before the sockets are read.
    if ticks_first {
        s.tick();
        s.pass_and_tick(30);
    }
    s.goes_on_with(ONE, patience, 1000);
    assert_eq!(s.holder().as_deref(), Some("a"), "{show}");
    s.goes_on(patience + 10);
    assert_eq!(s.holder().as_deref(), Some("b"), "{show}");
}

#[test]
fn one_stall_after_the_other_keeps_nobody_waiting_for_ever() {
    let mut s = held();
    s.wait(by("b"));
    let mut ms = 0;
    while s.holder().as_deref() == Some("a") {
        ms += 200;
        assert!(ms <= 2000, "{:?}", s.core.heartbeats);
        s.pass_and_tick(200);
    }
    assert!(ms > 300);
}

#[test]
fn nobody_is_silent_while_nothing_may_be_written() {
    for gate in [Gate::Shut, Gate::Waking] {
        let mut s = Shell::new();
        s.heard(ONE, 300);
        s.get(by("a").lease(100_000).watched().from(ONE));
        s.goes_on_with(ONE, 300, 100);
        s.core.locks.change_hold(&key(0, "k"), b"a", |hold| {
            hold.watch.as_mut().unwrap().asked = lock::WallMs(0);
        });
        s.wait(by("b"));
        s.gate = gate;
        s.goes_on(5000);
        assert_eq!(s.holder().as_deref(), Some("a"));
        s.gate = Gate::Open;
        s.tick();
        s.goes_on(90);
        assert_eq!(s.holder().as_deref(), Some("a"), "{gate:?}");
        // 0.1 s of it counts, and 0.1 s in which what came meanwhile is read.
        s.goes_on(220);
        assert_eq!(s.holder().as_deref(), Some("b"), "{gate:?}");
    }
}

#[test]
fn nobody_is_silent_while_the_slot_moves() {
    let mut s = held();
    s.wait(by("b"));
    s.ks.slot = Slot::Migrating;
    s.goes_on(1000);
    assert_eq!(lost(&mut s), []);
    s.ks.slot = Slot::Ours;
    s.goes_on(100);
    assert_eq!(s.holder().as_deref(), Some("b"));
}

#[test]
fn who_is_blocked_is_not_silent_and_has_its_whole_patience_then() {
    let mut s = held();
    s.get(by("x").on("other").lease(100_000));
    s.wait(by("b"));
    let own = s.wait(by("a").on("other").from(ONE));
    s.goes_on(2000);
    assert_eq!(s.holder().as_deref(), Some("a"));
    s.core.confirm(own);
    s.release_on(&key(0, "other"), "x", false).unwrap();
    s.goes_on(290);
    assert_eq!(s.holder().as_deref(), Some("a"));
    s.goes_on(170);
    assert_eq!(s.holder().as_deref(), Some("b"));
}

#[test]
fn a_reader_keeps_out_who_writes_and_not_who_reads() {
    let mut s = Shell::new();
    s.heard(ONE, 300);
    s.get(by("a").read().lease(100).watched().from(ONE));
    s.get(by("c").read().lease(1000).watched().from(OTHER));
    s.wait(by("b").write());
    s.goes_on(310);
    // The other reader is in the way still: but two that are silent may be.
    assert_eq!(lost(&mut s), [(client(ONE), Reason::Silent)]);

    let mut s = Shell::new();
    s.heard(ONE, 300);
    s.get(by("a").write().lease(100).watched().from(ONE));
    let b = s.wait(by("b").read());
    s.goes_on(310);
    assert!(is_granted(&s, b));
}

#[test]
fn two_that_are_silent_do_not_keep_a_writer_out_together() {
    let mut s = Shell::new();
    for (owner, number) in [("a", ONE), ("c", OTHER)] {
        s.heard(number, 300);
        s.get(by(owner).read().lease(100).watched().from(number));
    }
    let b = s.wait(by("b").write());
    s.goes_on(310);
    assert!(is_granted(&s, b));
}

#[test]
fn no_more_permits_are_lost_than_whoever_waits_has_use_for() {
    let mut s = Shell::new();
    for (owner, number) in [("a", ONE), ("c", OTHER)] {
        s.heard(number, 300);
        s.get(by(owner).permits(1, 2).lease(100).watched().from(number));
    }
    let b = s.wait(by("b").permits(1, 2));
    s.goes_on(1000);
    assert!(is_granted(&s, b));
    assert_eq!(lost(&mut s), [(client(ONE), Reason::Silent)]);
}

#[test]
fn who_was_told_that_nothing_is_granted_yet_has_nothing_of_a_loss() {
    let mut s = held();
    s.wait(by("b"));
    s.core.rules.grants_in = Some(1000);
    s.goes_on(500);
    assert_eq!(s.holder().as_deref(), Some("a"));
    s.core.rules.grants_in = None;
    s.goes_on(100);
    assert_eq!(s.holder().as_deref(), Some("b"));
}

#[test]
fn a_connection_that_closes_is_forgotten() {
    let mut s = held();
    assert!(s.core.is_bound_beside_block(client(ONE)));
    s.heard(OTHER, 300);
    assert!(s.core.tracks_disconnects() && s.core.is_bound_beside_block(client(OTHER)));
    for number in [ONE, OTHER] {
        s.notes.push(Note::Closed(client(number)));
        s.read_notes();
        assert!(!s.core.is_bound_beside_block(client(number)));
    }
    assert!(s.core.heartbeats.is_empty() && !s.core.tracks_disconnects());
}

#[test]
fn of_very_many_some_are_looked_at_in_a_turn_and_all_in_the_end() {
    let mut s = Shell::new();
    s.heard(ONE, 300);
    let names: Vec<String> = (0..1300).map(|n| format!("lock{n}")).collect();
    for name in &names {
        s.get(by("a").on(name).lease(100).watched().from(ONE));
    }
    s.goes_on(310);
    let waiting: Vec<WaiterId> = names.iter().map(|name| s.wait(by("b").on(name))).collect();
    s.goes_on(1000);
    assert!(waiting.iter().all(|id| is_granted(&s, *id)));
    assert_eq!(lost(&mut s).len(), names.len());
}

#[test]
fn a_server_without_holds_of_connections_or_heartbeats_has_nothing_to_look_at() {
    let mut s = Shell::new();
    s.heard(ONE, 300);
    assert_eq!(s.core.next_silence(), None);
    s.get(by("a").from(ONE));
    assert_eq!(s.core.next_silence(), None);
    let mut s = Shell::new();
    s.get(by("a").watched());
    assert_eq!(s.core.next_silence(), None);
    s.heard(ONE, 300);
    assert!(s.core.next_silence().is_some());
}
