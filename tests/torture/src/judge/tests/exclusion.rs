//! Who holds what, at once or not.

use super::*;

#[test]
fn two_owners_at_once_are_found() {
    let story = Story::new().op(1, &acquire("a", ""), (10, 11), ok(T)).op(
        2,
        &acquire("b", ""),
        (20, 21),
        ok(T + 1),
    );
    assert_eq!(story.found(), ["exclusion"]);
}

#[test]
fn readers_go_together_and_a_writer_does_not() {
    let read = |story: Story| {
        story.op(1, &acquire("a", "READ"), (10, 11), ok(T)).op(
            2,
            &acquire("b", "READ"),
            (20, 21),
            ok(T + 1),
        )
    };
    assert!(read(Story::new()).found().is_empty());
    let story = read(Story::new()).op(3, &acquire("c", "WRITE"), (30, 31), ok(T + 2));
    assert_eq!(story.found(), ["exclusion"]);
}

#[test]
fn a_hold_ends_when_its_release_is_sent() {
    let story = |call| {
        Story::new()
            .op(1, &acquire("a", ""), (10, 11), ok(T))
            .op(1, "RLOCK.RELEASE k a", (call, 40), ok(0))
            .op(2, &acquire("b", "BLOCK 0"), (5, 35), ok(T + 1))
    };
    assert!(story(30).found().is_empty());
    assert_eq!(story(36).found(), ["exclusion"]);
}

#[test]
fn a_nested_hold_that_is_left_still_excludes() {
    let story = |left| {
        Story::new()
            .op(1, &acquire("a", ""), (10, 11), ok(T))
            .op(1, &acquire("a", ""), (12, 13), ok(T))
            .op(1, "RLOCK.RELEASE k a", (20, 21), ok(left))
            .op(2, &acquire("b", ""), (30, 31), ok(T + 1))
    };
    assert_eq!(story(1).found(), ["exclusion"]);
    assert!(story(0).found().is_empty());
}

#[test]
fn a_lease_is_counted_from_before_it_was_asked_for() {
    let story = |at| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100", (0, 50), ok(T))
            .op(2, &acquire("b", ""), (at, at + 1), ok(T + 1))
    };
    assert_eq!(story(80).found(), ["exclusion"]);
    assert!(story(97).found().is_empty());
}

#[test]
fn a_renewal_may_shorten_a_lease_and_lengthen_it() {
    let story = |lease: u32| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 300", (0, 1), ok(T))
            .op(1, &format!("RLOCK.RENEW k a {lease}"), (10, 11), ok(1))
            .op(2, &acquire("b", ""), (250, 251), ok(T + 1))
    };
    assert!(story(100).found().is_empty());
    assert_eq!(story(400).found(), ["exclusion"]);
}

#[test]
fn a_watchdog_hold_lasts_as_long_as_its_connection() {
    let story = |closed| {
        Story::new()
            .conn(1, closed, End::Client)
            .op(1, "RLOCK.ACQUIRE k a 2000 WATCHDOG", (0, 1), ok(T))
            .op(2, &acquire("b", ""), (5000, 5001), ok(T + 1))
    };
    assert_eq!(story(8000).found(), ["exclusion"]);
    assert!(story(4999).found().is_empty());
}

#[test]
fn a_watchdog_is_not_relied_on_where_the_server_stood_still() {
    let story = Story::new()
        .op(1, "RLOCK.ACQUIRE k a 2000 WATCHDOG", (0, 1), ok(T))
        .fault("stop", &[], (1000, 4000), "")
        .op(2, &acquire("b", ""), (5000, 5001), ok(T + 1));
    assert!(story.found().is_empty());
}

#[test]
fn what_the_documentation_says_ends_holds() {
    let story = |kind, keys: &[&str]| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .fault(kind, keys, (10, 12), "")
            .op(2, &acquire("b", ""), (20, 21), ok(T + 1))
    };
    for kind in ["del", "force", "rename"] {
        assert!(story(kind, &["k"]).found().is_empty(), "{kind}");
        assert_eq!(story(kind, &["other"]).found(), ["exclusion"], "{kind}");
    }
    for kind in ["flushall", "swapdb", "demote", "restart-empty"] {
        assert!(story(kind, &[]).found().is_empty(), "{kind}");
    }
    // With an AOF a restart forgets nothing; nor do these.
    for kind in [
        "restart",
        "stop",
        "reload",
        "failover",
        "pause",
        "move-slot",
        "disk-full",
        "disk-exit",
    ] {
        assert_eq!(story(kind, &[]).found(), ["exclusion"], "{kind}");
    }
}

#[test]
fn a_lost_release_may_have_been_done() {
    let story = Story::new()
        .conn(1, 25, End::Client)
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "RLOCK.RELEASE k a", (20, 0), Out::Lost)
        .op(2, &acquire("b", ""), (22, 23), ok(T + 1));
    assert!(story.found().is_empty());
}

#[test]
fn an_owner_that_holds_is_not_told_otherwise() {
    let story = |end: u64| {
        Story::new()
            .op(1, &format!("RLOCK.ACQUIRE k a {end}"), (0, 1), ok(T))
            .op(1, "RLOCK.RELEASE k a", (500, 501), error("NOTHELD owner"))
    };
    assert_eq!(story(60_000).found(), ["held"]);
    assert!(story(400).found().is_empty());
}

#[test]
fn star_is_another_owner_on_each_connection() {
    let story = Story::new().op(1, &acquire("*", ""), (0, 1), ok(T)).op(
        2,
        &acquire("*", ""),
        (10, 11),
        ok(T + 1),
    );
    assert_eq!(story.found(), ["exclusion"]);
}
