//! Clocks that are stepped, and what that excuses: leases by the step, and no more.

use super::*;

impl Story {
    /// A step of so many ms, back if it is less than none, of a server's clock.
    fn step(mut self, server: u16, at: u64, ms: i64) -> Self {
        let kind = match ms {
            0.. => "clock-forward",
            _ => "clock-back",
        };
        self = self.fault(kind, &[], (at, at), "");
        if let Some(Record::Fault(fault)) = self.0.last_mut() {
            fault.ms = ms.unsigned_abs();
            fault.server = server;
        }
        self
    }
}

fn two_holds(story: Story, lease: u64, second: u64) -> Vec<&'static str> {
    let line = format!("RLOCK.ACQUIRE k a {lease}");
    let story = story.op(1, &line, (10, 11), ok(T));
    story
        .op(2, &acquire("b", ""), (second, second + 1), ok(T + 1))
        .found()
}

#[test]
fn a_step_forward_ends_leases_by_as_much_and_no_more() {
    let story = |server| Story::new().step(server, 20, 500);
    // It runs until 1010, and by that clock until 510.
    assert_eq!(two_holds(story(1), 1000, 480), ["exclusion"]);
    assert!(two_holds(story(1), 1000, 520).is_empty());
    assert!(two_holds(story(1), 400, 21).is_empty());
    // The clock of another server says nothing.
    assert_eq!(two_holds(story(2), 400, 21), ["exclusion"]);
}

#[test]
fn a_step_back_ends_no_lease() {
    let story = || Story::new().step(1, 20, -500);
    assert_eq!(two_holds(story(), 400, 300), ["exclusion"]);
    // And one forward to where it was ends those that began in between.
    let both = || story().step(1, 600, 500);
    assert_eq!(two_holds(both(), 1000, 900), ["exclusion"]);
    let between = Story::new().step(1, 5, -500).step(1, 600, 500);
    assert!(two_holds(between, 1000, 601).is_empty());
}

#[test]
fn what_a_step_excuses_is_counted() {
    let story = Story::new().step(1, 20, 500);
    let story = story.op(1, "RLOCK.ACQUIRE k a 400", (10, 11), ok(T));
    let story = story.op(2, &acquire("b", ""), (30, 31), ok(T + 1));
    let found = judge(&Past::new(story.0));
    assert_eq!(found.excused.get("clock-forward"), Some(&1));
}

#[test]
fn a_watchdog_outlasts_a_short_step() {
    let story = |ms| {
        let story = Story::new().step(1, 2000, ms);
        let line = "RLOCK.ACQUIRE k a 2000 WATCHDOG";
        let story = story.op(1, line, (10, 11), ok(T));
        story.op(2, &acquire("b", ""), (3000, 3001), ok(T + 1))
    };
    assert_eq!(story(100).found(), ["exclusion"]);
    assert!(story(1900).found().is_empty());
}

#[test]
fn a_lease_lasts_longer_by_a_step_back_and_no_more() {
    let story = |ms| {
        let story = Story::new().step(1, 20, ms);
        let story = story.op(1, "RLOCK.ACQUIRE k a 400", (10, 11), ok(T));
        story.op(2, &acquire("b", ""), (3000, 3001), Out::Null)
    };
    assert!(story(-5000).found().is_empty());
    assert_eq!(story(-500).found(), ["refused"]);
    assert_eq!(story(500).found(), ["refused"]);
}

#[test]
fn waits_go_by_no_clock_that_is_stepped() {
    let story = |ms, end| {
        let story = Story::new().step(1, 500, ms);
        let story = story.op(1, &acquire("a", ""), (10, 11), ok(T));
        story.op(2, &acquire("b", "BLOCK 1000"), (20, end), Out::Null)
    };
    assert!(story(5000, 1020).found().is_empty());
    assert_eq!(story(5000, 510).found(), ["time-outs"]);
    assert_eq!(story(-5000, 6000).found(), ["time-outs"]);
}

#[test]
fn tokens_fall_only_at_a_start_with_a_clock_that_is_behind() {
    let between = |kind, from, at| {
        let story = Story::new().step(1, 20, 60_000).step(1, 500, -60_000);
        let story = story.op(1, &acquire("a", ""), (10, 11), ok(T + 9));
        let story = story.fault(kind, &[], (from, 1000), "");
        story.op(2, "RLOCK.ACQUIRE l b 100", (at, at + 1), ok(T))
    };
    let story = |kind, at| between(kind, 900, at);
    assert!(story("restart", 2000).found().is_empty());
    // It gave the first one while its disk was full already.
    assert!(between("disk-exit", 5, 2000).found().is_empty());
    assert_eq!(story("stop", 2000).found(), ["tokens"]);
    assert_eq!(story("restart", 70_000).found(), ["tokens"]);
}

/// A counter that was kept over the start lifts the tokens of its own lock, and of no other.
#[test]
fn a_lock_with_a_counter_goes_on_above_it_where_the_clock_is_behind() {
    let story = |other: i64, own: i64| {
        let story = Story::new().step(1, 20, 60_000).step(1, 500, -60_000);
        let story = story.op(1, &acquire("a", ""), (10, 11), ok(T + 100));
        let story = story.fault("restart", &[], (900, 1000), "");
        story
            .op(1, "RLOCK.RELEASE k a", (2000, 2001), ok(0))
            .op(2, &acquire("b", ""), (2002, 2003), ok(T + 101))
            .op(2, "RLOCK.ACQUIRE l b 100", (2004, 2005), ok(T + other))
            .op(2, "RLOCK.RELEASE k b", (2010, 2011), ok(0))
            .op(3, &acquire("c", ""), (2012, 2013), ok(T + own))
    };
    assert!(story(5, 102).found().is_empty());
    assert_eq!(story(5, 101).found(), ["tokens"]);
    assert_eq!(story(5, 7).found(), ["tokens"]);
}

/// A counter that came with its slot from a server whose clock was ahead does so too.
#[test]
fn a_lock_whose_slot_came_from_a_clock_that_was_ahead_goes_on_above_it() {
    let story = |tag: &str, ms: i64| {
        let story = Story::new().step(2, 20, ms).step(2, 500, -ms);
        let story = story.fault("move-slot", &[tag], (900, 1000), "");
        story
            .op(2, "RLOCK.ACQUIRE {B}k b 100", (2002, 2003), ok(T + 60_000))
            .op(2, "RLOCK.ACQUIRE {A}l b 100", (2004, 2005), ok(T + 5))
    };
    assert!(story("{B}", 60_000).found().is_empty());
    assert_eq!(story("{C}", 60_000).found(), ["tokens"]);
    assert_eq!(story("{B}", 1000).found(), ["tokens"]);
}

#[test]
fn what_pexpire_left_of_a_lease_runs_by_the_clock_too() {
    let story = |ms| {
        let story = Story::new().op(1, "RLOCK.ACQUIRE k a 1500", (10, 11), ok(T));
        let mut story = story.fault("pexpire", &["k"], (20, 20), "");
        if let Some(Record::Fault(fault)) = story.0.last_mut() {
            fault.ms = 900;
        }
        let story = story.step(1, 720, ms);
        story.op(2, &acquire("b", ""), (730, 731), ok(T + 1))
    };
    // It runs until 920, and by that clock until 620, or until 820.
    assert!(story(300).found().is_empty());
    assert_eq!(story(100).found(), ["exclusion"]);
}

#[test]
fn a_lock_that_moved_may_go_by_either_clock() {
    let story = |server, ms, moved: &[&str]| {
        let story = Story::new().step(server, 600, ms);
        let story = moved
            .iter()
            .fold(story, |story, kind| story.fault(kind, &[], (300, 310), ""));
        let story = story.op(1, "RLOCK.ACQUIRE k a 1000", (10, 11), ok(T));
        story.op(2, &acquire("b", ""), (1100, 1101), ok(T + 1))
    };
    // The clock is set back where the lock was, or where it came to.
    for server in [1, 2] {
        assert!(story(server, -500, &["move-slot"]).found().is_empty());
    }
    assert_eq!(story(1, -500, &[]).found(), ["exclusion"]);
}

/// So do those that a new master has from one whose clock was ahead.
#[test]
fn locks_of_a_new_master_go_on_above_their_counters() {
    let story = |kind: &str, own: i64| {
        let story = Story::new().step(2, 20, 60_000).step(2, 500, -60_000);
        let story = story.fault(kind, &[], (900, 1000), "");
        story
            .op(2, "RLOCK.ACQUIRE k b 100", (2002, 2003), ok(T + 60_000))
            .op(2, "RLOCK.ACQUIRE l b 100", (2004, 2005), ok(T + 5))
            .op(2, "RLOCK.RELEASE k b", (2010, 2011), ok(0))
            .op(3, &acquire("c", ""), (2012, 2013), ok(T + own))
    };
    for kind in ["failover", "demote", "sentinel-kill"] {
        assert!(story(kind, 60_001).found().is_empty(), "{kind}");
        assert_eq!(story(kind, 7).found(), ["tokens"], "{kind}");
    }
    assert_eq!(story("stop", 60_001).found(), ["tokens"]);
}
