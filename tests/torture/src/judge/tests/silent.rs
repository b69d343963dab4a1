//! Sessions that say that they are alive, and fall silent.

use super::*;

fn beat(story: Story, conn: u32, at: u64, patience: u64) -> Story {
    let out = Out::Text("OK".to_owned());
    story.op(
        conn,
        &format!("RLOCK.HEARTBEAT {patience}"),
        (at, at + 1),
        out,
    )
}

/// `a` says until 800 that it is alive, holds `k` from 1000 on by a watchdog and may be silent for a
/// second. `b` waits for so long.
fn story(from: u64, until: u64, end: Out) -> Story {
    let story = beat(beat(Story::new(), 1, 400, 1000), 1, 800, 1000);
    let acquire = "RLOCK.ACQUIRE k a 1500 WATCHDOG NOTIFY c t";
    story.op(1, acquire, (1000, 1001), ok(T)).op(
        2,
        "RLOCK.ACQUIRE k b 60000 BLOCK 20000",
        (from, until),
        end,
    )
}

/// `b` waits, and has it when `a` has lost it.
fn served(at: u64) -> Story {
    story(1500, at, ok(T + 1)).told(1, at, "lost t silent")
}

#[test]
fn who_was_silent_loses() {
    assert!(served(2600).found().is_empty());
    let later = beat(served(2600), 1, 2700, 1000);
    assert!(later.found().is_empty());
}

#[test]
fn who_was_heard_of_in_time_loses_nothing() {
    let heard = |story| (1..9).fold(story, |story, n| beat(story, 1, 1000 + n * 300, 1000));
    assert_eq!(heard(served(2600)).found(), ["exclusion", "lost", "silent"]);
    // It had said that it has more patience, or none.
    let patient = beat(served(2600), 1, 1100, 5000);
    assert_eq!(patient.found(), ["exclusion", "lost", "silent"]);
    let never = Story::new()
        .op(
            1,
            "RLOCK.ACQUIRE k a 1500 WATCHDOG NOTIFY c t",
            (0, 1),
            ok(T),
        )
        .op(
            2,
            "RLOCK.ACQUIRE k b 60000 BLOCK 20000",
            (500, 2600),
            ok(T + 1),
        )
        .told(1, 2600, "lost t silent");
    assert_eq!(never.found(), ["exclusion", "lost", "silent"]);
}

#[test]
fn a_lease_that_was_asked_for_is_not_shortened() {
    assert_eq!(served(2200).found(), ["exclusion", "lost"]);
}

#[test]
fn nobody_is_silent_for_nobody() {
    let alone = |from| {
        let story = beat(Story::new(), 1, 0, 1000);
        story
            .op(
                1,
                "RLOCK.ACQUIRE k a 1500 WATCHDOG NOTIFY c t",
                (1, 2),
                ok(T),
            )
            .op(
                2,
                "RLOCK.ACQUIRE k b 900 BLOCK 100",
                (from, from + 2),
                ok(T + 1),
            )
            .told(1, 2600, "lost t silent")
    };
    assert!(alone(2595).found().is_empty());
    assert_eq!(alone(3000).found(), ["silent"]);
    let tries = beat(Story::new(), 1, 0, 1000)
        .op(
            1,
            "RLOCK.ACQUIRE k a 1500 WATCHDOG NOTIFY c t",
            (1, 2),
            ok(T),
        )
        .op(2, "RLOCK.ACQUIRE k b 900", (2595, 2597), ok(T + 1))
        .told(1, 2600, "lost t silent");
    assert_eq!(tries.found(), ["silent"]);
    let reads = beat(Story::new(), 1, 0, 1000)
        .op(
            1,
            "RLOCK.ACQUIRE k a 1500 READ WATCHDOG NOTIFY c t",
            (1, 2),
            ok(T),
        )
        .op(
            2,
            "RLOCK.ACQUIRE k b 900 READ BLOCK 100",
            (2595, 2597),
            ok(T + 1),
        )
        .told(1, 2600, "lost t silent");
    assert_eq!(reads.found(), ["silent"]);
}

/// The server, or what it writes, stood still for a second.
fn stood(story: Story, kind: &str, ms: u64) -> Story {
    let mut story = story.fault(kind, &[], (1500, 2510), "");
    for record in &mut story.0 {
        if let Record::Fault(fault) = record {
            fault.ms = ms;
        }
    }
    story
}

#[test]
fn what_the_server_stood_still_does_not_count() {
    for kind in ["stop", "pause"] {
        // Since 2500 it heard for 0.1 s.
        assert_eq!(stood(served(2600), kind, 1000).found(), ["silent"]);
        assert!(stood(served(2800), kind, 1000).found().is_empty());
        // It is not sure for how long it stood still.
        assert!(stood(served(2600), kind, 0).found().is_empty());
        let another = stood(served(2600), kind, 1000).elsewhere();
        assert!(another.found().is_empty());
    }
}

#[test]
fn who_waits_behind_a_silent_one_is_served() {
    let waits = |from, until| story(from, until, Out::Null);
    assert_eq!(waits(1500, 21_500).found(), ["silent"]);
    assert_eq!(waits(5000, 25_000).found(), ["silent"]);
    // It was alive again before it lasted that long.
    let again = (0..90).fold(waits(1500, 21_500), |story, n| {
        beat(story, 1, 2900 + n * 300, 1000)
    });
    assert!(again.found().is_empty());
    // It is told so late, and another one had it meanwhile.
    let other = waits(1500, 21_500).op(
        3,
        "RLOCK.ACQUIRE k c 60000 BLOCK 9000",
        (1400, 2700),
        ok(T + 1),
    );
    assert!(other.found().is_empty());
    // One who waits all the time would have been told that it has it, as long as it listens.
    let queued = Out::Text("QUEUED".to_owned());
    let queues = "RLOCK.ACQUIRE k c 60000 QUEUE 0 NOTIFY d u";
    let before = || waits(1500, 21_500).op(3, queues, (1400, 1401), queued.clone());
    assert_eq!(before().found(), ["silent"]);
    assert!(before().conn(3, 2600, End::Client).found().is_empty());
    let lost = waits(1500, 21_500).told(1, 2700, "lost t silent");
    assert!(!lost.found().contains(&"silent"));
    let stopped = waits(1500, 21_500).fault("stop", &[], (1400, 21_000), "");
    assert!(stopped.found().is_empty());
}

#[test]
fn a_heartbeat_is_answered_by_ok() {
    let answered = |out| Story::new().op(1, "RLOCK.HEARTBEAT 1000", (0, 1), out);
    assert!(answered(Out::Text("OK".to_owned())).found().is_empty());
    assert_eq!(answered(ok(1)).found(), ["answers"]);
}
