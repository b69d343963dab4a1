//! Locks that are free, and those who wait for them.

use super::*;

/// `a` holds by these words until it ends in some way; `b` waits from 100 ms on and
/// gets it at `at`.
fn left(words: &str, conn: (u64, End), at: u64) -> Story {
    Story::new()
        .conn(1, conn.0, conn.1)
        .op(1, &format!("RLOCK.ACQUIRE k a {words}"), (0, 1), ok(T))
        .op(2, "RLOCK.ACQUIRE k b 9 BLOCK 0", (100, at), ok(T + 1))
}

#[test]
fn a_lease_does_not_outlive_its_deadline() {
    let open = (100_000, End::Open);
    assert_eq!(left("1000", open, 2050).found(), ["idle"]);
    assert!(left("1000", open, 1050).found().is_empty());
    let stopped = left("1000", open, 2050).fault("stop", &[], (900, 2040), "");
    assert!(stopped.found().is_empty());
    let renewed = left("1000", open, 2050).op(1, "RLOCK.RENEW k a 1000", (900, 901), ok(1));
    assert!(renewed.found().is_empty());
    let by_hand = left("1000", open, 2050).fault("pexpire", &["k"], (900, 901), "");
    assert!(by_hand.found().is_empty());
}

#[test]
fn a_watchdog_hold_does_not_outlive_its_connection() {
    let words = "9000 WATCHDOG";
    assert_eq!(left(words, (1000, End::Client), 3000).found(), ["idle"]);
    assert!(left(words, (1000, End::Client), 1010).found().is_empty());
    assert!(left(words, (100_000, End::Open), 3000)
        .op(1, "RLOCK.RELEASE k a", (2990, 2991), ok(0))
        .found()
        .is_empty());
}

#[test]
fn a_release_hands_on() {
    let story =
        |at| left("60000", (100_000, End::Open), at).op(1, "RLOCK.RELEASE k a", (500, 501), ok(0));
    assert_eq!(story(1500).found(), ["idle"]);
    assert!(story(510).found().is_empty());
}

#[test]
fn a_request_that_was_lost_may_hold() {
    let story = Story::new()
        .conn(3, 1600, End::Client)
        .op(1, "RLOCK.ACQUIRE k a 1000", (0, 1), ok(T))
        .op(2, "RLOCK.ACQUIRE k b 9 BLOCK 0", (100, 2500), ok(T + 1))
        .op(3, "RLOCK.ACQUIRE k c 900 BLOCK 0", (50, 0), Out::Lost);
    assert!(story.found().is_empty());
}

/// On a busy machine a client may read its grant late, and another see it before.
#[test]
fn who_is_seen_to_hold_may_not_have_read_its_grant() {
    let story = |seen| {
        let list = Out::List(true, vec![("k".to_owned(), "b".to_owned())]);
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 9000", (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE k b 9000 BLOCK 0", (700, 3000), ok(T + 1))
            .op(1, "RLOCK.RELEASE k a", (2800, 2801), ok(0))
            .op(3, "RLOCK.LIST", (seen, seen + 1), list)
    };
    assert!(story(2850).found().is_empty());
    assert!(story(2400).found().contains(&"refused"));
}

#[test]
fn nobody_is_refused_a_lock_that_is_free() {
    let story = |at| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100", (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE k b 100", (at, at + 1), Out::Null)
    };
    assert_eq!(story(900).found(), ["refused"]);
    assert!(story(300).found().is_empty());
}

#[test]
fn locks_that_are_asked_for_together_may_be_kept_idle_but_not_all_of_them() {
    let story = |until: u64| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100", (0, 1), ok(T))
            .op(2, &format!("RLOCK.ACQUIRE l b {until}"), (0, 1), ok(T + 1))
            .op(3, "RLOCK.MACQUIRE 2 k l c 9 BLOCK 0", (10, 3010), ok(T + 2))
            .op(4, "RLOCK.ACQUIRE k d 9 BLOCK 0", (20, 3020), ok(T + 3))
    };
    assert!(story(3000).found().is_empty());
    assert_eq!(story(1000).found(), ["idle"]);
}
