//! That the judge finds what it is to find, and allows what may be. Times are ms.

use rlock_torture::saw::{Ask, Fault, Left, Life, Record, Told, Wire};
use serde_json::{json, Value};

use crate::past::Past;

mod plain;
mod silent;
mod uses;
mod way;

fn us(ms: u64) -> u64 {
    ms * 1000
}

fn ask(driver: usize, what: &str, hold: &str, (call, reply): (u64, u64), out: Value) -> Record {
    let words = json!({"key": "x", "lease": 2000, "wait": 1000});
    asked(driver, what, hold, (call, reply), (words, out))
}

fn asked(
    driver: usize,
    what: &str,
    hold: &str,
    (call, reply): (u64, u64),
    (words, out): (Value, Value),
) -> Record {
    Record::Ask(Ask {
        driver,
        life: 1,
        what: what.to_owned(),
        hold: hold.to_owned(),
        words,
        call: us(call),
        reply: Some(us(reply)),
        out,
    })
}

fn granted(driver: usize, hold: &str, at: u64, token: i64) -> Record {
    ask(
        driver,
        "acquire",
        hold,
        (at - 1, at),
        json!({"ok": {"token": token}}),
    )
}

fn plain(driver: usize, hold: &str, at: u64, token: i64) -> Record {
    let words = json!({"key": "x", "lease": 2000, "watchdog": false});
    let out = json!({"ok": {"token": token}});
    asked(driver, "acquire", hold, (at - 1, at), (words, out))
}

fn has(driver: usize, hold: &str, at: u64) -> Record {
    ask(
        driver,
        "state",
        hold,
        (at, at + 1),
        json!({"ok": {"lost": null}}),
    )
}

fn lost(driver: usize, hold: &str, at: u64) -> Record {
    ask(
        driver,
        "state",
        hold,
        (at, at + 1),
        json!({"ok": {"lost": "connection"}}),
    )
}

fn event(driver: usize, hold: &str, at: u64) -> Record {
    Record::Told(Told {
        driver,
        life: 1,
        hold: hold.to_owned(),
        reason: "connection".to_owned(),
        at: us(at),
    })
}

fn released(driver: usize, hold: &str, at: u64) -> Record {
    ask(driver, "release", hold, (at, at + 1), json!({"ok": {}}))
}

fn closed(driver: usize, at: u64) -> Record {
    Record::Wire(Wire {
        driver,
        opened: 0,
        closed: Some(us(at)),
    })
}

fn fault(kind: &str, driver: Option<usize>, key: Option<&str>, (from, to): (u64, u64)) -> Record {
    Record::Fault(Fault {
        kind: kind.to_owned(),
        driver,
        key: key.map(str::to_owned),
        begin: us(from),
        end: us(to),
    })
}

#[track_caller]
fn finds(records: Vec<Record>, checks: &[&str]) {
    let found = crate::judge(&Past::new(records));
    let all: Vec<&str> = found.all.iter().map(|one| one.check).collect();
    assert_eq!(all, checks, "{:?}", found.all);
}

#[test]
fn two_who_say_that_they_hold_the_same() {
    let two = |second: u64| {
        vec![
            granted(1, "a", 10, 1),
            has(1, "a", 500),
            granted(2, "b", second, 2),
            has(2, "b", second + 50),
        ]
    };
    finds(two(400), &["exclusion"]);
    // Nobody asked the first since.
    finds(two(501), &[]);
}

#[test]
fn a_release_that_is_asked_for_is_the_last_word() {
    let one = [granted(1, "a", 10, 1), released(1, "a", 300)];
    let other = [granted(2, "b", 301, 2), released(2, "b", 400)];
    finds(one.into_iter().chain(other).collect(), &[]);
}

/// What was asked before the release, and is answered after it, says nothing of the time between.
#[test]
fn what_is_answered_behind_a_release_says_nothing() {
    let late = |reply: u64| {
        vec![
            plain(1, "a", 10, 1),
            ask(
                1,
                "state",
                "a",
                (2500, reply),
                json!({"ok": {"lost": null}}),
            ),
            ask(1, "release", "a", (2510, 2520), json!({"error": "lost"})),
        ]
    };
    finds(late(2515), &[]);
    finds(late(2505), &["deadline"]);
}

#[test]
fn a_nested_hold_lasts_until_its_last_release() {
    let again = ask(1, "again", "a", (20, 21), json!({"ok": {}}));
    let first = [
        granted(1, "a", 10, 1),
        again,
        released(1, "a", 30),
        has(1, "a", 300),
        released(1, "a", 400),
    ];
    let second = [granted(2, "b", 100, 2), released(2, "b", 120)];
    finds(first.into_iter().chain(second).collect(), &["exclusion"]);
}

#[test]
fn what_ends_holds_excuses() {
    let two = |cause: Record| {
        let first = [granted(1, "a", 10, 1), has(1, "a", 500), cause];
        let second = [granted(2, "b", 400, 2), released(2, "b", 450)];
        first.into_iter().chain(second).collect()
    };
    finds(two(closed(1, 399)), &[]);
    finds(two(closed(2, 398)), &["exclusion"]);
    finds(two(fault("throw-out", None, Some("x"), (390, 391))), &[]);
    finds(
        two(fault("throw-out", None, Some("y"), (390, 391))),
        &["exclusion"],
    );
    finds(two(fault("kill-server", None, None, (390, 600))), &[]);
    finds(
        two(fault("freeze", Some(1), None, (100, 3000))),
        &["exclusion"],
    );
    finds(
        two(fault("stop-driver", Some(1), None, (100, 300))),
        &["exclusion"],
    );
}

#[test]
fn a_plain_hold_outlives_connections_and_the_server() {
    let first = [plain(1, "a", 10, 1), has(1, "a", 500), closed(1, 300)];
    let second = [
        fault("kill-server", None, None, (310, 350)),
        granted(2, "b", 400, 2),
        released(2, "b", 450),
    ];
    finds(first.into_iter().chain(second).collect(), &["exclusion"]);
}

#[test]
fn a_plain_hold_beyond_its_lease() {
    finds(vec![plain(1, "a", 10, 1), has(1, "a", 2009)], &[]);
    finds(vec![plain(1, "a", 10, 1), has(1, "a", 2011)], &["deadline"]);
    let words = json!({"lease": 1000});
    let renewed = |out: Value| asked(1, "renew", "a", (1500, 1501), (words.clone(), out));
    let later = |out: Value, at: u64| vec![plain(1, "a", 10, 1), renewed(out), has(1, "a", at)];
    finds(later(json!({"ok": {}}), 2400), &[]);
    finds(later(json!({"ok": {}}), 2502), &["deadline"]);
    // It may be carried out later.
    finds(later(json!({"error": "connection"}), 2502), &[]);
}

#[test]
fn more_permits_than_there_are() {
    let one = |driver: usize, hold: &str, at: u64, permits: u64| {
        let words = json!({"key": "p", "lease": 2000, "limit": 3, "permits": permits});
        let out = json!({"ok": {"token": at}});
        [
            asked(driver, "acquire", hold, (at - 1, at), (words, out)),
            has(driver, hold, 100 + at),
        ]
    };
    let all = |third: u64| -> Vec<Record> {
        let two = one(1, "a", 10, 1).into_iter().chain(one(2, "b", 20, 1));
        two.chain(one(1, "c", 30, third)).collect()
    };
    finds(all(1), &[]);
    finds(all(2), &["permits"]);
}

#[test]
fn tokens_that_do_not_rise() {
    let two = |second: i64| {
        let first = [granted(1, "a", 10, 5), released(1, "a", 20)];
        let second = [granted(2, "b", 40, second), released(2, "b", 60)];
        first.into_iter().chain(second).collect()
    };
    finds(two(6), &[]);
    finds(two(4), &["tokens", "tokens"]);
}

#[test]
fn a_loss_that_is_not_told() {
    let late = |at: u64| vec![granted(1, "a", 10, 1), closed(1, 100), has(1, "a", at)];
    finds(late(5000), &[]);
    finds(late(6000), &["notified"]);
    let mut stopped = late(6000);
    stopped.push(fault("stop-driver", Some(1), None, (200, 3000)));
    finds(stopped, &[]);
    let thrown = fault("throw-out", None, Some("x"), (99, 100));
    finds(vec![plain(1, "a", 10, 1), thrown, has(1, "a", 1900)], &[]);
}

#[test]
fn a_loss_without_an_event_or_with_two() {
    let told = |events: usize| {
        let events = (0..events).map(|n| event(1, "a", 101 + n as u64));
        let all = [granted(1, "a", 10, 1), closed(1, 100), lost(1, "a", 300)];
        all.into_iter().chain(events).collect()
    };
    finds(told(0), &["event"]);
    finds(told(1), &[]);
    finds(told(2), &["event"]);
}

#[test]
fn a_loss_that_is_none() {
    finds(
        vec![granted(1, "a", 10, 1), event(1, "a", 500)],
        &["false-loss"],
    );
    finds(
        vec![granted(1, "a", 10, 1), event(1, "a", 500), closed(1, 501)],
        &[],
    );
    finds(
        vec![plain(1, "a", 10, 1), event(1, "a", 500), closed(1, 501)],
        &["false-loss"],
    );
    finds(vec![plain(1, "a", 10, 1), event(1, "a", 2009)], &[]);
}

#[test]
fn answers_and_waits() {
    let refused = |at: u64| {
        vec![ask(
            1,
            "acquire",
            "a",
            (10, at),
            json!({"error": "not_acquired"}),
        )]
    };
    finds(refused(1010), &[]);
    finds(refused(900), &["waits"]);
    finds(refused(12_000), &["waits"]);
    finds(
        vec![ask(1, "acquire", "a", (10, 20), json!({"error": "other"}))],
        &["answers"],
    );
    let mut silent = Ask {
        driver: 1,
        life: 1,
        what: "acquire".to_owned(),
        ..Ask::default()
    };
    finds(vec![Record::Ask(silent.clone())], &["answers"]);
    let life = Life {
        driver: 1,
        life: 1,
        from: 0,
        to: us(50),
        killed: true,
        wrong: None,
    };
    silent.words = json!({"key": "x"});
    finds(vec![Record::Ask(silent), Record::Life(life)], &[]);
}

#[test]
fn what_is_left() {
    let left = Left {
        when: "all was released".to_owned(),
        what: vec!["somebody holds x".to_owned()],
        looked_at: 1,
    };
    finds(vec![Record::Left(left)], &["left"]);
}
