//! Settings under which nothing is excused, and others.

use rlock_torture::history::Round;

use super::*;

fn round(topology: &str, persistence: &str, wait: u32, strict: bool) -> Story {
    Story::new().with(Record::Round(Round {
        topology: topology.to_owned(),
        persistence: persistence.to_owned(),
        wait,
        strict,
        ..Round::default()
    }))
}

/// Two holds, with something in between; what is found, and what was excused.
fn twice(story: Story, fault: &str) -> (Vec<&'static str>, Vec<String>) {
    let story = story
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "RLOCK.RENEW k a 60000", (2, 3), ok(1))
        .op(1, "WAIT 2 100", (2, 4), ok(2))
        .fault(fault, &["k"], (10, 12), "")
        .op(2, &acquire("b", ""), (20, 21), ok(T + 1))
        .op(2, "RLOCK.RENEW k b 60000", (22, 23), ok(1))
        .op(2, "WAIT 2 100", (22, 24), ok(2));
    excused(story)
}

fn excused(story: Story) -> (Vec<&'static str>, Vec<String>) {
    let found = judge(&Past::new(story.0));
    let mut checks: Vec<&str> = found.all.iter().map(|one| one.check).collect();
    checks.dedup();
    (checks, found.excused.into_keys().collect())
}

#[test]
fn under_strict_settings_nothing_is_excused() {
    for topology in ["single", "replica", "cluster"] {
        for fault in ["del", "force", "flushall", "demote", "clock-forward"] {
            let (found, excused) = twice(round(topology, "always", 0, true), fault);
            assert_eq!(found, ["exclusion"], "{topology}, {fault}");
            assert!(excused.is_empty());
        }
    }
}

#[test]
fn elsewhere_each_is_counted_by_its_fault() {
    for fault in ["del", "force", "flushall", "demote"] {
        let (found, excused) = twice(round("replica", "always", 0, false), fault);
        assert!(found.is_empty(), "{fault}: {found:?}");
        assert_eq!(excused, [fault]);
    }
    // What is not written before it is acknowledged a restart may forget.
    let (found, excused) = twice(round("single", "none", 0, true), "restart-empty");
    assert!(found.is_empty());
    assert_eq!(excused, ["restart-empty"]);
}

#[test]
fn a_master_that_is_replaced_excuses_none_that_all_replicas_had() {
    for fault in ["sentinel-kill", "sentinel-stop", "sentinel-failover"] {
        let (found, excused) = twice(round("sentinel", "always", 2, true), fault);
        assert_eq!(found, ["exclusion"], "{fault}");
        assert!(excused.is_empty());
        let (found, excused) = twice(round("sentinel", "always", 0, false), fault);
        assert!(found.is_empty(), "{fault}: {found:?}");
        assert_eq!(excused, [fault]);
    }
}

#[test]
fn a_hold_that_too_few_replicas_have_has_not_begun() {
    let story = |count, wait| {
        round("sentinel", "always", 2, true)
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(1, "RLOCK.RENEW k a 60000", (2, 3), ok(1))
            .op(1, wait, (2, 4), ok(count))
            .fault("sentinel-stop", &[], (10, 12), "")
            .op(2, &acquire("b", ""), (20, 21), ok(T + 1))
    };
    assert_eq!(excused(story(2, "WAIT 2 100")).0, ["exclusion"]);
    assert_eq!(excused(story(1, "WAIT 2 100")), (vec![], vec![]));
    assert_eq!(excused(story(2, "ECHO 2")).0, ["answers"]);
}

#[test]
fn on_one_master_two_hold_at_once_under_no_rule() {
    let story = |wait| {
        round("sentinel", "always", wait, wait > 0)
            .fault("sentinel-kill", &[], (1, 2), "")
            .op(1, &acquire("a", ""), (10, 11), ok(T))
            .op(2, &acquire("b", ""), (20, 21), ok(T + 1))
    };
    assert_eq!(story(0).found(), ["exclusion"]);
    assert_eq!(story(2).found(), ["exclusion"]);
}

#[test]
fn a_release_that_a_new_master_never_heard_of_ends_nothing() {
    let story = |at| {
        let x = "RLOCK.ACQUIRE x x1 60000";
        round("sentinel", "always", 0, false)
            .op(1, x, (0, 1), ok(T))
            .op(1, "RLOCK.RELEASE x x1", (at, at + 1), ok(0))
            .fault("sentinel-partition", &[], (5000, 6000), "")
            .op(2, &acquire("b", ""), (7000, 7001), ok(T + 5))
            .op(3, x, (8000, 8001), ok(T))
    };
    assert!(story(5100).found().is_empty());
    assert_eq!(story(100).found(), ["tokens"]);
}

#[test]
fn what_is_freed_at_a_rest_is_no_fault_and_is_not_counted() {
    let story = |rest| round("single", "always", 0, true).fault("rest", &[], rest, "");
    assert_eq!(twice(story((5, 30)), "force"), (vec![], vec![]));
    assert_eq!(twice(story((30, 40)), "force").0, ["exclusion"]);
}

#[test]
fn wait_may_find_that_the_master_is_a_replica() {
    let refused = "ERR WAIT cannot be used with replica instances. Please also note";
    let story = |line: &str| Story::new().op(1, line, (0, 1), Out::Error(refused.to_owned()));
    assert!(story("WAIT 2 100").found().is_empty());
    assert_eq!(story("RLOCK.INFO k").found(), ["answers"]);
}
