//! Holds that give way.

use rlock_torture::saw::Record;
use serde_json::{json, Value};

use super::{asked, event, fault, finds, granted, has, lost, released};

fn gives_way(hold: &str, next: &str, at: (u64, u64), out: Value) -> Record {
    let words = json!({"key": "x", "lease": 2000, "wait": 1000, "next": next});
    asked(1, "give_way", hold, at, (words, out))
}

fn gave(token: i64) -> Value {
    json!({"ok": {"gave": true, "token": token}})
}

fn between(released_at: u64) -> Vec<Record> {
    vec![granted(2, "b", 320, 2), released(2, "b", released_at)]
}

fn with(mut all: Vec<Record>, more: Vec<Record>) -> Vec<Record> {
    all.extend(more);
    all
}

#[test]
fn others_hold_it_meanwhile() {
    let one = |token| {
        vec![
            granted(1, "a", 10, 1),
            gives_way("a", "a~1", (300, 400), gave(token)),
            has(1, "a~1", 500),
            released(1, "a~1", 600),
        ]
    };
    finds(with(one(3), between(390)), &[]);
    finds(with(one(3), between(450)), &["exclusion"]);
    finds(with(one(1), between(390)), &["tokens", "tokens"]);
}

#[test]
fn where_nobody_waits_it_is_said_to_be_held() {
    let out = json!({"ok": {"gave": false, "token": 1}});
    let one = vec![
        granted(1, "a", 10, 1),
        gives_way("a", "a~1", (350, 351), out),
        released(1, "a", 600),
    ];
    finds(with(one, between(390)), &["exclusion"]);
}

#[test]
fn in_vain_it_is_over() {
    let out = json!({"error": "not_acquired"});
    let late = |at| {
        vec![
            granted(1, "a", 10, 1),
            gives_way("a", "a~1", (300, at), out.clone()),
        ]
    };
    finds(with(late(1300), between(1400)), &[]);
    finds(with(late(700), between(1400)), &["waits"]);
}

#[test]
fn its_loss_is_told_of_what_it_is_by_then() {
    let one = vec![
        granted(1, "a", 10, 1),
        gives_way("a", "a~1", (300, 400), gave(3)),
        has(1, "a~1", 450),
        event(1, "a", 500),
        released(1, "a~1", 600),
    ];
    finds(one, &["false-loss"]);
}

#[test]
fn its_loss_is_told_before_its_grant() {
    let one = vec![
        granted(1, "a", 10, 1),
        gives_way("a", "a~1", (300, 400), gave(3)),
        fault("throw-out", None, Some("x"), (380, 390)),
        event(1, "a", 395),
        lost(1, "a~1", 450),
    ];
    finds(one, &[]);
}
