//! Replies, and when they come.

use super::*;

#[test]
fn each_request_is_answered_once_by_what_it_may() {
    let one = |line: &str, out| Story::new().op(1, line, (0, 1), out).found();
    assert_eq!(one("RLOCK.ACQUIRE k a 9", ok(1)), ["answers"]);
    assert_eq!(one("RLOCK.RELEASE k a", ok(T)), ["answers"]);
    assert_eq!(one("RLOCK.RENEW k a 9", ok(0)), ["answers"]);
    assert_eq!(one("ECHO x", Out::Text("y".to_owned())), ["answers"]);
    assert_eq!(
        one("RLOCK.ACQUIRE k a 9", error("ERR rlock: internal")),
        ["answers"]
    );
    assert_eq!(one("RLOCK.ACQUIRE k bad -1", ok(T)), ["answers"]);
    assert_eq!(
        one("RLOCK.ACQUIRE k a 9 BLOCK 0", Out::Unanswered),
        ["answers"]
    );
    assert!(one("RLOCK.ACQUIRE k bad -1", error("ERR the lease")).is_empty());
    assert!(one("ECHO x", Out::Text("x".to_owned())).is_empty());
    let stray = Stray {
        conn: 1,
        at: 5,
        text: "Int(1)".to_owned(),
    };
    assert_eq!(Story::new().with(Record::Stray(stray)).found(), ["answers"]);
}

#[test]
fn a_connection_whose_replies_do_not_fit_tells_nothing_else() {
    let story = Story::new()
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "ECHO x", (2, 3), ok(T))
        .op(1, "RLOCK.RELEASE k a", (4, 5), error("NOTHELD owner"))
        .op(2, &acquire("b", ""), (6, 7), ok(T + 1));
    assert_eq!(story.found(), ["answers"]);
}

#[test]
fn a_wait_ends_when_it_should() {
    let wait = |reply| {
        Story::new().op(1, &acquire("a", ""), (0, 1), ok(T)).op(
            2,
            "RLOCK.ACQUIRE k b 9 BLOCK 500",
            (10, reply),
            Out::Null,
        )
    };
    assert!(wait(510).found().is_empty());
    assert!(wait(1400).found().is_empty());
    assert_eq!(wait(400).found(), ["time-outs"]);
    assert_eq!(wait(1600).found(), ["time-outs"]);
    assert!(wait(400)
        .fault("unblock", &[], (399, 401), "7,2")
        .found()
        .is_empty());
    let other = wait(400).fault("unblock", &[], (399, 401), "7,22");
    assert_eq!(other.found(), ["time-outs"]);
    let elsewhere = wait(400).fault("unblock", &[], (399, 401), "7,2");
    assert_eq!(elsewhere.elsewhere().found(), ["time-outs"]);
    assert!(wait(1600)
        .fault("stop", &[], (300, 1500), "")
        .found()
        .is_empty());
    let stall = Stall {
        who: "server 1".to_owned(),
        from: 300 * MS,
        to: 1500 * MS,
    };
    assert!(wait(1600).with(Record::Stall(stall)).found().is_empty());
}
