//! Programs that stand still for longer than their patience.

use rlock_torture::saw::{Record, Told};
use serde_json::json;

use super::{asked, fault, finds, has, us};

/// Driver 1 has a patience of 800 ms, and holds `x` since 10; driver 2 waits for it.
fn story(until: u64, out: serde_json::Value) -> Vec<Record> {
    let open = json!({"patience": 800});
    let lease = json!({"key": "x", "lease": 700});
    let waits = json!({"key": "x", "lease": 2000, "wait": 9000});
    vec![
        asked(1, "open", "", (1, 2), (open, json!({"ok": {}}))),
        asked(
            1,
            "acquire",
            "a",
            (9, 10),
            (lease, json!({"ok": {"token": 1}})),
        ),
        asked(2, "acquire", "b", (100, until), (waits, out)),
    ]
}

fn served(until: u64) -> Vec<Record> {
    story(until, json!({"ok": {"token": 2}}))
}

fn stopped(from: u64, to: u64) -> Record {
    fault("stop-driver", Some(1), None, (from, to))
}

fn silent(at: u64) -> Record {
    Record::Told(Told {
        driver: 1,
        life: 1,
        hold: "a".to_owned(),
        reason: "silent".to_owned(),
        at: us(at),
    })
}

fn with(mut story: Vec<Record>, more: Vec<Record>) -> Vec<Record> {
    story.extend(more);
    story
}

#[test]
fn who_stood_still_for_long_loses() {
    let then = |more| with(with(served(2000), vec![stopped(1000, 4000)]), more);
    finds(then(vec![silent(4001)]), &[]);
    // It may say so as long as it has not looked.
    finds(then(vec![has(1, "a", 4001), silent(4002)]), &[]);
    let short = with(served(2000), vec![stopped(1000, 1200), silent(2001)]);
    finds(short, &["silent"]);
    let another = fault("stop-driver", Some(2), None, (1000, 4000));
    finds(
        with(served(5000), vec![another, silent(5001)]),
        &["false-loss", "silent"],
    );
}

#[test]
fn who_did_not_stand_still_holds() {
    finds(
        with(
            served(2000),
            vec![stopped(1000, 1200), has(1, "a", 2500), has(2, "b", 2600)],
        ),
        &["exclusion"],
    );
}

#[test]
fn who_waits_behind_one_who_stands_still_is_served() {
    let late = || with(served(5000), vec![stopped(1000, 4500), silent(4990)]);
    finds(late(), &["silent"]);
    finds(
        with(late(), vec![fault("stop-server", None, None, (900, 1200))]),
        &[],
    );
    // It cannot be said who has it.
    finds(
        with(late(), vec![fault("freeze", Some(2), None, (2000, 2100))]),
        &[],
    );
    finds(
        with(late(), vec![fault("orphan", Some(2), None, (20, 500))]),
        &[],
    );
    finds(
        with(served(5000), vec![stopped(1000, 2700), silent(4990)]),
        &[],
    );
}
