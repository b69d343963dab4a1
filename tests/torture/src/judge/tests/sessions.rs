//! Queued waiters, and how their waits end.

use super::*;

fn queued() -> Out {
    Out::Text("QUEUED".to_owned())
}

fn wait(ms: u32, tag: &str) -> String {
    format!("RLOCK.ACQUIRE k b 900000 QUEUE {ms} NOTIFY c {tag}")
}

/// `a` holds until 100; `b` waits from 10 on.
fn story(ms: u32) -> Story {
    Story::new()
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(2, &wait(ms, "t"), (10, 11), queued())
        .op(1, "RLOCK.RELEASE k a", (100, 101), ok(0))
}

fn granted(token: i64) -> String {
    format!("granted t {token}")
}

#[test]
fn a_wait_ends_by_one_message() {
    let once = || story(0).told(2, 102, &granted(T + 1));
    assert!(once().found().is_empty());
    let twice = once().told(2, 103, "timeout t");
    assert_eq!(twice.found(), ["messages"]);
    let strange = once().told(2, 103, "timeout u");
    assert_eq!(strange.found(), ["messages"]);
    let to_another = story(0).told(3, 102, &granted(T + 1));
    assert_eq!(to_another.found(), ["messages"]);
    let babble = once().told(2, 103, "hello");
    assert_eq!(babble.found(), ["messages"]);
    assert_eq!(once().told(2, 103, "error t WHAT").found(), ["messages"]);
}

#[test]
fn a_message_may_overtake_the_reply() {
    let story = Story::new()
        .op(2, &wait(0, "t"), (10, 12), queued())
        .told(2, 11, &granted(T));
    assert!(story.found().is_empty());
    let answered = Story::new()
        .op(2, &wait(0, "t"), (10, 12), ok(T))
        .told(2, 11, &granted(T));
    assert_eq!(answered.found(), ["messages"]);
}

#[test]
fn what_a_message_grants_excludes_like_a_reply() {
    let other = |at| {
        story(0)
            .told(2, 102, &granted(T + 1))
            .op(3, &acquire("c", "BLOCK 0"), (20, at), ok(T + 2))
    };
    assert_eq!(other(110).found(), ["exclusion"]);
    let released = other(110).op(2, "RLOCK.RELEASE k b", (103, 104), ok(0));
    assert!(released.found().is_empty());
}

#[test]
fn a_release_by_another_token_ends_nothing() {
    let story = |token: i64| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(
                1,
                &format!("RLOCK.RELEASE k a IFTOKEN {token}"),
                (5, 6),
                ok(0),
            )
            .op(2, &acquire("b", ""), (10, 11), ok(T + 1))
    };
    assert!(story(T).found().is_empty());
    assert_eq!(story(T - 1).found(), ["exclusion"]);
    assert_eq!(story(1).found(), ["exclusion"]);
    // After a restart the hold may have got another token.
    let restarted = story(T - 1).fault("restart", &[], (2, 3), "");
    assert!(restarted.found().is_empty());
}

#[test]
fn order_is_the_same_for_queue_and_block() {
    let third = |token, heard| {
        story(0)
            .op(3, "RLOCK.ACQUIRE k c 1 BLOCK 0", (heard, 130), ok(token))
            .told(2, 140, &granted(T + 5))
    };
    assert!(third(T + 9, 20)
        .op(2, "RLOCK.RELEASE k b", (120, 121), ok(0))
        .found()
        .is_empty());
    assert_eq!(third(T + 3, 20).found(), ["order"]);
    assert!(third(T + 3, 10).found().is_empty());
}

#[test]
fn a_wait_that_is_over_is_told() {
    let silent = || {
        Story::new().op(1, &acquire("a", ""), (0, 1), ok(T)).op(
            2,
            &wait(500, "t"),
            (10, 11),
            queued(),
        )
    };
    assert_eq!(silent().found(), ["silence"]);
    assert!(silent().told(2, 511, "timeout t").found().is_empty());
    assert_eq!(silent().told(2, 411, "timeout t").found(), ["time-outs"]);
    assert!(silent().conn(2, 600, End::Client).found().is_empty());
    let deaf = silent().op(2, "UNSUBSCRIBE c", (300, 301), Out::Text("OK".to_owned()));
    assert!(deaf.found().is_empty());
    assert!(silent().told(2, 300, "sunsubscribe").found().is_empty());
}

#[test]
fn what_is_told_stands_before_what_is_asked_later() {
    let echo = || Out::Text("x".to_owned());
    let story = |second| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(2, &wait(500, "t"), (10, 11), queued())
            .fault("stop", &[], (400, 500), "")
            .op(2, "ECHO x", (600, 601), echo())
            .op(2, "ECHO x", (second, second + 1), echo())
            .conn(2, second + 100, End::Client)
    };
    assert_eq!(story(1200).found(), ["silence"]);
    assert!(story(900).found().is_empty());
    let paused = story(1200).fault("pause", &[], (550, 650), "");
    assert!(paused.found().is_empty());
    // Who stood still for a second tells nothing for two beats after it.
    let stood = |ms: u64| {
        story(1800).with(Record::Stall(Stall {
            who: "server 1".to_owned(),
            from: 610 * MS,
            to: (610 + ms) * MS,
        }))
    };
    assert!(stood(1000).found().is_empty());
    assert_eq!(stood(500).found(), ["silence"]);
}

#[test]
fn what_was_called_off_is_not_granted() {
    let cancelled = |count| story(0).op(2, "RLOCK.CANCEL k b", (50, 51), ok(count));
    let late = |count| cancelled(count).told(2, 1500, &granted(T + 1));
    assert!(cancelled(1).told(2, 52, "timeout t").found().is_empty());
    assert_eq!(
        cancelled(1).told(2, 102, &granted(T + 1)).found(),
        ["cancel"]
    );
    assert_eq!(cancelled(2).told(2, 52, "timeout t").found(), ["cancel"]);
    assert_eq!(cancelled(1).found(), ["cancel"]);
    // It had been granted already.
    assert!(cancelled(0)
        .told(2, 102, &granted(T + 1))
        .found()
        .is_empty());
    assert!(late(0).found().contains(&"cancel"));
    // Another lock, another mode, another owner.
    for other in ["l b", "k b READ", "k c"] {
        let line = format!("RLOCK.CANCEL {other}");
        let story = story(0).op(2, &line, (50, 51), ok(1));
        assert!(
            story.told(2, 102, &granted(T + 1)).found().is_empty(),
            "{other}"
        );
    }
}

#[test]
fn a_wait_by_block_is_called_off_too() {
    let story = |count, out: Out| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(2, &acquire("b", "BLOCK 500"), (10, 120), out)
            .op(3, "RLOCK.CANCEL k b", (100, 101), ok(count))
            .op(1, "RLOCK.RELEASE k a", (110, 111), ok(0))
    };
    assert!(story(1, Out::Null).found().is_empty());
    assert_eq!(story(0, Out::Null).found(), ["time-outs"]);
    assert!(story(0, ok(T + 1)).found().is_empty());
    assert_eq!(story(1, ok(T + 1)).found(), ["cancel"]);
}

#[test]
fn once_gives_one_hold() {
    let story = |words: &str, left| {
        Story::new()
            .op(1, &acquire("a", "ONCE"), (0, 1), ok(T))
            .op(1, &acquire("a", words), (2, 3), ok(T))
            .op(1, "RLOCK.RELEASE k a", (4, 5), ok(left))
    };
    assert!(story("ONCE", 0).found().is_empty());
    assert_eq!(story("ONCE", 1).found(), ["once"]);
    assert!(story("", 1).found().is_empty());
}

#[test]
fn once_takes_the_place_of_the_older_request() {
    let story = || {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(2, &wait(0, "t"), (10, 11), queued())
            .op(
                3,
                "RLOCK.ACQUIRE k b 900000 QUEUE 0 NOTIFY d u ONCE",
                (20, 21),
                queued(),
            )
            .op(1, "RLOCK.RELEASE k a", (1900, 1901), ok(0))
            .told(3, 1902, &format!("granted u {}", T + 1))
    };
    let taken = "error t SUPERSEDED a newer request of the same owner took the place";
    assert!(story().told(2, 22, taken).found().is_empty());
    assert_eq!(story().found(), ["once"]);
    // Both have a place, and the hold is nested.
    let both = story().told(2, 1902, &granted(T + 1));
    assert_eq!(both.found(), ["once"]);
    assert!(story().conn(2, 500, End::Client).found().is_empty());
    // Nobody had asked for the place.
    let alone = Story::new()
        .op(2, &wait(0, "t"), (10, 11), queued())
        .told(2, 12, taken);
    assert_eq!(alone.found(), ["messages"]);
}

#[test]
fn the_same_request_may_be_sent_again_without_a_word() {
    let again = || {
        story(0)
            .op(2, &wait(0, "t"), (20, 21), queued())
            .told(2, 102, &granted(T + 1))
    };
    assert!(again().found().is_empty());
    // Each of the two may end, but no third.
    let first = story(30)
        .op(2, &wait(0, "t"), (60, 61), queued())
        .told(2, 41, "timeout t")
        .told(2, 102, &granted(T + 1));
    assert!(first.found().is_empty());
    let third = again().told(2, 103, "timeout t").told(2, 104, "timeout t");
    assert!(third.found().contains(&"messages"));
}

#[test]
fn what_comes_before_the_reply_to_what_was_sent_again_may_be_for_the_first() {
    let short = "RLOCK.ACQUIRE k b 30 QUEUE 0 NOTIFY c t";
    let again = |sent, reply| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(2, short, (10, 11), queued())
            .op(1, "RLOCK.RELEASE k a", (15, 16), ok(0))
            .op(3, &acquire("c", "BLOCK 0"), (20, 60), ok(T + 2))
            .told(2, 70, &granted(T + 1))
            .told(2, 70, "lost t expired")
            .op(2, short, (sent, reply), queued())
    };
    assert!(again(69, 75).found().is_empty());
    // But not what comes after it.
    assert_eq!(again(65, 68).found(), ["exclusion"]);
}

#[test]
fn whose_subscription_went_with_its_slot_may_be_refused() {
    let refused = || Out::Error("ERR QUEUE and NOTIFY need RESP3 and a subscription".to_owned());
    let story = || Story::new().op(2, &wait(0, "t"), (10, 12), refused());
    assert_eq!(story().found(), ["answers"]);
    assert!(story().told(2, 11, "sunsubscribe").found().is_empty());
}

#[test]
fn a_list_names_who_holds() {
    let story = |whole, key: &str| {
        let holders = vec![(key.to_owned(), "a".to_owned())];
        Story::new().op(1, &acquire("a", ""), (0, 1), ok(T)).op(
            2,
            "RLOCK.LIST COUNT 250",
            (10, 11),
            Out::List(whole, holders),
        )
    };
    assert!(story(true, "k").found().is_empty());
    assert_eq!(story(true, "l").found(), ["list"]);
    assert!(story(false, "l").found().is_empty());
}

#[test]
fn no_condition_that_nobody_fulfils_frees_a_lock() {
    let story = |freed| Story::new().op(1, "RLOCK.FORCE k IFOWNER nobody", (0, 1), ok(freed));
    assert!(story(0).found().is_empty());
    assert_eq!(story(1).found(), ["answers"]);
}

#[test]
fn what_a_fault_excuses_is_counted() {
    let story = |at| {
        let mut story = Story::new().op(1, &acquire("a", ""), (0, 1), ok(T)).fault(
            "force",
            &["k"],
            (10, 12),
            "Int(1)",
        );
        for conn in 2..4 {
            let line = format!("RLOCK.ACQUIRE k b{conn} 20");
            story = story.op(
                conn,
                &line,
                (at * u64::from(conn), at * u64::from(conn)),
                ok(T + i64::from(conn)),
            );
        }
        judge(&Past::new(story.0)).excused
    };
    assert_eq!(story(50), BTreeMap::from([("force".to_owned(), 1)]));
    assert!(story(40_000).is_empty());
}
