//! Who is served first, and by which token.

use rlock_torture::history::Round;

use super::*;

/// `a` holds; `b` and then `c` wait; they get these tokens.
fn queue(b: i64, c: i64, seen: bool) -> Story {
    let story = Story::new()
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "RLOCK.RELEASE k a", (100, 101), ok(0))
        .op(2, "RLOCK.ACQUIRE k b 1 BLOCK 0", (10, 110), ok(T + b))
        .op(3, "RLOCK.ACQUIRE k c 1 BLOCK 0", (20, 111), ok(T + c));
    match seen {
        true => story.ping(12, 14),
        false => story.ping(12, 24),
    }
}

#[test]
fn whoever_came_first_is_served_first() {
    assert_eq!(queue(9, 5, true).found(), ["order"]);
    assert!(queue(5, 9, true).found().is_empty());
    // It is not certain that the server had read the first one by then.
    assert!(queue(9, 5, false).found().is_empty());
}

#[test]
fn several_threads_read_in_any_order() {
    let round = Round {
        threads: true,
        ..Round::default()
    };
    let story = queue(9, 5, true).with(Record::Round(round));
    assert!(story.found().is_empty());
}

#[test]
fn a_request_behind_another_tells_nothing_of_what_was_read() {
    let story = |answered| {
        queue(9, 5, false)
            .op(4, "ECHO y", (8, answered), Out::Text("y".to_owned()))
            .op(4, "ECHO x", (12, 14), Out::Text("x".to_owned()))
    };
    assert!(story(13).found().is_empty());
    assert_eq!(story(9).found(), ["order"]);
}

#[test]
fn a_try_does_not_overtake() {
    let story = Story::new()
        .op(1, "RLOCK.ACQUIRE k a 50", (0, 1), ok(T))
        .op(2, "RLOCK.ACQUIRE k b 1 BLOCK 0", (10, 120), ok(T + 9))
        .ping(12, 14)
        .op(3, "RLOCK.ACQUIRE k c 1", (100, 101), ok(T + 5));
    assert_eq!(story.found(), ["order"]);
}

#[test]
fn one_who_was_sent_away_no_longer_waits() {
    // `b` reads at 120 that it waited in vain.
    let story = |ids| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 50", (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE k b 1 BLOCK 100", (10, 120), Out::Null)
            .ping(12, 14)
            .op(3, "RLOCK.ACQUIRE k c 1 BLOCK 0", (20, 60), ok(T + 5))
            .fault("unblock", &[], (30, 31), ids)
    };
    assert!(story("7,2").found().is_empty());
    assert_eq!(story("7,22").found(), ["order"]);
}

#[test]
fn order_is_not_asked_for_where_others_stand_in_several_queues() {
    let story = queue(9, 5, true).op(4, "RLOCK.MACQUIRE 2 k l m 1", (30, 31), Out::Null);
    assert!(story.found().is_empty());
}

#[test]
fn tokens_rise_and_nested_holds_keep_theirs() {
    let story = |second: i64, nested: i64| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(1, &acquire("a", ""), (2, 3), ok(T + nested))
            .op(2, "RLOCK.ACQUIRE l b 100", (10, 11), ok(T + second))
    };
    assert!(story(1, 0).found().is_empty());
    assert_eq!(story(-1, 0).found(), ["tokens"]);
    assert_eq!(story(0, 0).found(), ["tokens"]);
    assert_eq!(story(9, 5).found(), ["tokens"]);
}

#[test]
fn requests_at_the_same_time_may_get_tokens_in_any_order() {
    let story = Story::new()
        .op(1, "RLOCK.ACQUIRE k a 9", (0, 5), ok(T + 1))
        .op(2, "RLOCK.ACQUIRE l b 9", (1, 4), ok(T));
    assert!(story.found().is_empty());
}

#[test]
fn a_hold_that_was_renamed_keeps_its_token() {
    let story = |kind, keys: &[&str]| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE m b 9", (2, 3), ok(T + 1))
            .fault(kind, keys, (5, 6), "")
            .op(1, "RLOCK.ACQUIRE l a 9", (10, 11), ok(T))
    };
    assert!(story("rename", &["k", "l"]).found().is_empty());
    assert!(story("swapdb", &[]).found().is_empty());
    assert_eq!(story("del", &["k"]).found(), ["tokens"]);
}
