//! Holds that are lost, and who is told.

use super::*;

/// `a` holds for so long and is to be told of its end.
fn holds(lease: u32) -> Story {
    let line = format!("RLOCK.ACQUIRE k a {lease} NOTIFY c t");
    Story::new().op(1, &line, (0, 1), ok(T))
}

#[test]
fn a_lease_that_is_over_is_told_once() {
    assert!(holds(500).told(1, 501, "lost t expired").found().is_empty());
    assert_eq!(holds(500).found(), ["silence"]);
    let twice = holds(500)
        .told(1, 501, "lost t expired")
        .told(1, 502, "lost t expired");
    assert_eq!(twice.found(), ["lost"]);
    assert!(holds(500).conn(1, 900, End::Client).found().is_empty());
    let deaf = holds(500).op(1, "RESET", (300, 301), Out::Text("RESET".to_owned()));
    assert!(deaf.found().is_empty());
    let stopped = holds(500).fault("stop", &[], (400, 450), "");
    assert!(stopped.found().is_empty());
    let renewed = holds(500).op(1, "RLOCK.RENEW k a 900000", (300, 301), ok(1));
    assert!(renewed.found().is_empty());
}

#[test]
fn no_loss_is_told_of_what_is_held() {
    assert_eq!(
        holds(900_000).told(1, 500, "lost t expired").found(),
        ["lost"]
    );
    let by_hand = |kind, note, reason: &str| {
        let text = format!("lost t {reason}");
        holds(900_000)
            .fault(kind, &["k"], (400, 401), note)
            .told(1, 402, &text)
    };
    assert!(by_hand("force", "Int(1)", "forced").found().is_empty());
    assert_eq!(by_hand("del", "Int(1)", "forced").found(), ["lost"]);
    assert_eq!(by_hand("del", "Int(1)", "evicted").found(), ["lost"]);
    let moved = holds(900_000).op(2, "RLOCK.ACQUIRE k a 900000 ONCE NOTIFY d u", (5, 6), ok(T));
    assert!(moved.told(1, 7, "lost t rebound").found().is_empty());
}

#[test]
fn a_loss_by_somebodys_hand_is_told() {
    let freed = |note| holds(900_000).fault("force", &["k"], (400, 401), note);
    assert_eq!(freed("Int(1)").found(), ["silence"]);
    assert!(freed("Int(0)").found().is_empty());
    assert!(freed("Int(1)")
        .told(1, 402, "lost t forced")
        .found()
        .is_empty());
}

#[test]
fn a_flush_of_another_server_takes_nothing() {
    let flushed = || holds(900_000).fault("flushall", &[], (400, 401), "");
    assert_eq!(flushed().found(), ["silence"]);
    assert!(flushed().elsewhere().found().is_empty());
}

#[test]
fn the_last_name_is_told() {
    let renewed = || {
        holds(900)
            .op(2, "RLOCK.RENEW k a 900 NOTIFY d u", (100, 101), ok(1))
            .told(1, 102, "lost t rebound")
    };
    assert!(renewed().told(2, 1001, "lost u expired").found().is_empty());
    assert_eq!(
        renewed().told(1, 1001, "lost t expired").found(),
        ["lost", "silence"]
    );
    assert_eq!(renewed().found(), ["silence"]);
}

#[test]
fn no_loss_is_told_of_what_its_owner_released() {
    let released = |words: &str| {
        holds(200)
            .op(1, &format!("RLOCK.RELEASE k a{words}"), (150, 210), ok(0))
            .told(1, 205, "lost t expired")
    };
    assert_eq!(released("").found(), ["lost"]);
    // It may have been too late.
    assert!(released(" IFHELD").found().is_empty());
    let elsewhere = holds(200).op(2, "RLOCK.RELEASE k a", (150, 151), ok(0));
    assert!(elsewhere.told(1, 152, "lost t released").found().is_empty());
}
