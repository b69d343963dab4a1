//! What is promised without the module, and of those who are no clients of ours.

use rlock_torture::saw::{Record, Round};
use serde_json::json;

use super::{
    ask, asked, closed, event, fault, finds, granted, has, lost, plain, released, Told, Value,
};

/// A round on a server without the module, in which driver 3 is Redisson.
fn without_module(records: Vec<Record>, checks: &[&str]) {
    finds(round(records, true), checks);
}

fn round(records: Vec<Record>, plain: bool) -> Vec<Record> {
    let names = ["raw", "python", "python", "redisson"];
    let round = Record::Round(Round {
        drivers: names.map(str::to_owned).to_vec(),
        raw: vec![3],
        plain,
        ..Round::default()
    });
    [round].into_iter().chain(records).collect()
}

fn deleted(driver: usize, hold: &str, at: u64) -> Record {
    Record::Told(Told {
        driver,
        life: 1,
        hold: hold.to_owned(),
        reason: "deleted".to_owned(),
        at: at * 1000,
    })
}

fn by_redisson(hold: &str, at: u64, token: Value) -> Record {
    let words = json!({"key": "x", "lease": 2000, "watchdog": false});
    let out = json!({"ok": {"token": token}});
    asked(3, "acquire", hold, (at - 1, at), (words, out))
}

#[test]
fn a_hold_outlives_its_connection_and_the_server() {
    let two = |cause: Record| {
        let first = [granted(1, "a", 10, 1), has(1, "a", 500), cause];
        let second = [granted(2, "b", 400, 2), released(2, "b", 450)];
        first.into_iter().chain(second).collect()
    };
    without_module(two(closed(1, 399)), &["exclusion"]);
    let killed = fault("kill-server", None, None, (390, 399));
    without_module(two(killed), &["exclusion"]);
    let thrown = fault("throw-out", None, Some("x"), (390, 391));
    without_module(two(thrown), &[]);
    finds(round(two(closed(1, 399)), false), &[]);
}

#[test]
fn a_closed_connection_is_no_loss() {
    let late = vec![granted(1, "a", 10, 1), closed(1, 100), has(1, "a", 9000)];
    without_module(late, &[]);
}

#[test]
fn a_hold_that_was_thrown_out_is_known_by_its_renewal() {
    let late = |at: u64| {
        let thrown = fault("throw-out", None, Some("x"), (99, 100));
        vec![granted(1, "a", 10, 1), thrown, has(1, "a", at)]
    };
    without_module(late(7000), &[]);
    without_module(late(7200), &["notified"]);
    finds(round(late(7000), false), &["notified"]);
    // Nobody renews it.
    let thrown = fault("throw-out", None, Some("x"), (99, 100));
    let words = json!({"key": "x", "lease": 20000, "watchdog": false});
    let out = json!({"ok": {"token": 1}});
    let long = asked(1, "acquire", "a", (9, 10), (words, out));
    without_module(vec![long, thrown, has(1, "a", 9000)], &[]);
}

#[test]
fn a_hold_that_was_not_renewed_for_its_lease() {
    let silent = |kind: &str, driver: Option<usize>, at: u64| {
        let silence = fault(kind, driver, None, (1000, 5000));
        vec![granted(1, "a", 10, 1), silence, has(1, "a", at)]
    };
    without_module(silent("freeze", Some(1), 3400), &[]);
    without_module(silent("freeze", Some(1), 3600), &["deadline"]);
    without_module(silent("freeze", Some(2), 3600), &[]);
    without_module(silent("stop-server", None, 3600), &["deadline"]);
    // By then it can have been renewed.
    without_module(silent("stop-server", None, 5001), &[]);
}

#[test]
fn a_loss_that_is_none() {
    let gone = |at: u64| vec![granted(1, "a", 10, 1), event(1, "a", at)];
    without_module(gone(4000), &["false-loss"]);
    let stopped = |from: u64, to: u64, at: u64| {
        let mut all = gone(at);
        all.push(fault("stop-server", None, None, (from, to)));
        all
    };
    without_module(stopped(2000, 4000, 4000), &[]);
    // Its first lease was not over.
    without_module(stopped(100, 1500, 1500), &["false-loss"]);
    without_module(stopped(100, 1000, 9000), &["false-loss"]);
    let mut cut = gone(4000);
    cut.push(closed(1, 3000));
    without_module(cut, &[]);
    let by_max = json!({"key": "x", "lease": 2000, "max": 1000});
    let out = json!({"ok": {"token": 1}});
    let short = asked(1, "acquire", "a", (9, 10), (by_max, out));
    without_module(vec![short, event(1, "a", 1010)], &[]);
}

#[test]
fn a_hold_that_nobody_has_taken_away_is_there() {
    let gone = |cause: Record| {
        let first = granted(1, "a", 10, 1);
        vec![first, deleted(1, "a", 4000), cause]
    };
    let stopped = fault("stop-server", None, None, (2000, 3900));
    without_module(gone(stopped), &["false-loss"]);
    let thrown = fault("throw-out", None, Some("x"), (3000, 3001));
    without_module(gone(thrown), &[]);
}

#[test]
fn a_loss_without_an_event() {
    let words = fault("stop-server", None, None, (100, 4000));
    let silent = vec![granted(1, "a", 10, 1), words, lost(1, "a", 4100)];
    without_module(silent, &["event"]);
}

#[test]
fn redisson_holds_as_others_do() {
    let two = |second: Record| {
        let first = [by_redisson("a", 10, Value::Null), released(3, "a", 500)];
        first.into_iter().chain([second]).collect::<Vec<_>>()
    };
    let beside = |at: u64| {
        let mut all = two(granted(1, "b", at, 2));
        all.push(has(1, "b", at + 50));
        all
    };
    finds(round(beside(400), false), &["exclusion"]);
    finds(round(beside(501), false), &[]);
    without_module(beside(400), &["exclusion"]);
}

#[test]
fn redisson_is_told_that_it_holds_what_it_holds() {
    let gone = |at: u64| {
        let out = json!({"error": "lost"});
        let release = ask(3, "release", "a", (at, at + 1), out);
        round(vec![by_redisson("a", 10, Value::Null), release], true)
    };
    finds(gone(2000), &["held"]);
    finds(gone(2009), &[]);
}

#[test]
fn tokens_of_all_kinds_rise() {
    let three = |fenced: Value, last: i64| {
        let first = [plain(1, "a", 10, 5), released(1, "a", 20)];
        let second = [by_redisson("b", 40, fenced), released(3, "b", 60)];
        let third = [plain(2, "c", 80, last), released(2, "c", 90)];
        let all = first.into_iter().chain(second).chain(third);
        round(all.collect(), true)
    };
    finds(three(json!(6), 7), &[]);
    finds(three(Value::Null, 7), &[]);
    finds(three(json!(4), 7), &["tokens", "tokens"]);
    finds(three(Value::Null, 5), &["tokens", "tokens"]);
    // Only Redisson may give none.
    let words = json!({"key": "x", "lease": 2000});
    let none = asked(1, "acquire", "a", (9, 10), (words, json!({"ok": {}})));
    without_module(vec![none], &["tokens"]);
}
