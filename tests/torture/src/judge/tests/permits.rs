//! Permits: no more of them than the limit.

use super::*;

fn take(owner: &str, words: &str) -> String {
    format!("RLOCK.ACQUIRE k {owner} 60000 LIMIT {words}")
}

#[test]
fn more_permits_than_the_limit_are_found() {
    let story = |count: u32| {
        Story::new()
            .op(1, &take("a", "3 PERMITS 2"), (0, 1), ok(T))
            .op(
                2,
                &take("b", &format!("3 PERMITS {count}")),
                (10, 11),
                ok(T + 1),
            )
    };
    assert!(story(1).found().is_empty());
    assert_eq!(story(2).found(), ["permits"]);
}

#[test]
fn what_an_owner_takes_adds_up_and_with_once_does_not() {
    let story = |words: &str| {
        Story::new()
            .op(1, &take("a", "3 PERMITS 2"), (0, 1), ok(T))
            .op(1, &take("a", words), (2, 3), ok(T + 1))
            .op(2, &take("b", "3"), (10, 11), ok(T + 2))
    };
    assert!(story("3 PERMITS 2 ONCE").found().is_empty());
    assert_eq!(story("3 PERMITS 2").found(), ["permits"]);
}

#[test]
fn what_is_left_after_a_release_counts() {
    let story = |left, other: &str| {
        Story::new()
            .op(1, &take("a", "3 PERMITS 3"), (0, 1), ok(T))
            .op(1, "RLOCK.RELEASE k a PERMITS 1", (5, 6), ok(left))
            .op(2, &take("b", other), (10, 11), ok(T + 1))
    };
    assert!(story(2, "3 PERMITS 1").found().is_empty());
    assert_eq!(story(2, "3 PERMITS 2").found(), ["permits"]);
    assert!(story(1, "3 PERMITS 2").found().is_empty());
    assert!(story(0, "3 PERMITS 3").found().is_empty());
    // By then it may have released more.
    let more = story(2, "3 PERMITS 2").op(3, "RLOCK.RELEASE k a PERMITS 1", (4, 7), ok(1));
    assert!(more.found().is_empty());
}

#[test]
fn a_lease_of_permits_that_have_come_back_counts_no_more() {
    let story = |all: &str, lease| {
        let short = format!("RLOCK.ACQUIRE k a {lease} LIMIT 2 PERMITS 2");
        Story::new()
            .op(1, &take("a", "2 PERMITS 1"), (0, 1), ok(T))
            .op(1, all, (2, 3), ok(0))
            .op(1, &short, (4, 5), ok(T + 1))
            .op(1, "RLOCK.RELEASE k a PERMITS", (6, 7), ok(1))
            .op(
                1,
                "RLOCK.RENEW k a 1000 PERMITS",
                (40, 41),
                error("NOTHELD"),
            )
    };
    let all = "RLOCK.RELEASE k a PERMITS ALL";
    assert!(story(all, 20).found().is_empty());
    assert_eq!(story(all, 1000).found(), ["held"]);
}

#[test]
fn those_who_hold_at_once_said_the_same_limit() {
    let story = |limit: &str, at| {
        Story::new()
            .op(1, &take("a", "3"), (0, 1), ok(T))
            .op(1, "RLOCK.RELEASE k a PERMITS", (20, 21), ok(0))
            .op(2, &take("b", limit), (at, at + 1), ok(T + 1))
    };
    assert!(story("3", 10).found().is_empty());
    assert_eq!(story("4", 10).found(), ["permits"]);
    assert!(story("4", 22).found().is_empty());
}

#[test]
fn the_limit_that_an_operator_sets_counts_while_somebody_holds() {
    let story = |at, limit: &str| {
        Story::new()
            .op(1, &take("a", "3"), (0, 1), ok(T))
            .op(3, &format!("RLOCK.LIMIT k {limit}"), (5, 6), ok(3))
            .op(2, &take("b", "3 PERMITS 2"), (at, 11), ok(T + 1))
            .op(4, &take("c", "3"), (12, 13), ok(T + 2))
    };
    assert!(story(10, "4").found().is_empty());
    assert_eq!(story(10, "2").found(), ["permits"]);
    // Nobody knows whether it was there first.
    let early = |reply| {
        Story::new()
            .op(1, &take("a", "3"), (0, 1), ok(T))
            .op(3, "RLOCK.LIMIT k 2", (5, 6), ok(3))
            .op(2, &take("b", "3 PERMITS 2 BLOCK 0"), (4, reply), ok(T + 1))
    };
    assert!(early(11).found().is_empty());
    // With nobody there it is forgotten.
    let freed = Story::new()
        .op(1, &take("a", "3"), (0, 1), ok(T))
        .op(3, "RLOCK.LIMIT k 2", (5, 6), ok(3))
        .op(1, "RLOCK.RELEASE k a PERMITS", (7, 8), ok(0))
        .op(2, &take("b", "3 PERMITS 3"), (10, 11), ok(T + 1));
    assert!(freed.found().is_empty());
}

#[test]
fn a_lock_without_holders_has_no_limit_that_is_wrong() {
    let story = |at| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100 LIMIT 3", (0, 1), ok(T))
            .op(
                2,
                &take("b", "4"),
                (at, at + 1),
                error("WRONGLIMIT 'k' is held"),
            )
    };
    assert!(story(50).found().is_empty());
    assert_eq!(story(1000).found(), ["refused"]);
}

#[test]
fn each_that_is_given_more_has_a_greater_token() {
    let story = |token| {
        Story::new()
            .op(1, &take("a", "3"), (0, 1), ok(T))
            .op(1, &take("a", "3"), (2, 3), ok(token))
    };
    assert!(story(T + 1).found().is_empty());
    assert_eq!(story(T).found(), ["tokens"]);
}
