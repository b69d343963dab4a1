//! Counters, events, copies and crashes.

use super::*;

#[test]
fn events_and_counters_grow_alike() {
    let sample = |at, acquired, heard| {
        Record::Sample(Sample {
            server: 1,
            stream: 0,
            at,
            counters: counts(&[("acquired", acquired)]),
            events: counts(&[("acquired", heard)]),
        })
    };
    let story = |heard| Story::new().with(sample(1, 5, 0)).with(sample(2, 9, heard));
    assert!(story(4).found().is_empty());
    assert_eq!(story(3).found(), ["counters"]);
}

#[test]
fn counters_are_what_clients_were_told() {
    let story = |acquired, waiting| {
        Story::new()
            .op(1, "RLOCK.MACQUIRE 2 k l a 100", (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE m b 100", (5, 0), Out::Lost)
            .with(Record::Run(Run {
                server: 1,
                from: 0,
                to: None,
            }))
            .with(Record::Rest(Rest {
                server: 1,
                at: 50 * MS,
                counters: counts(&[
                    ("acquired", acquired),
                    ("waiting", waiting),
                    ("watchdog_holds", 0),
                    ("forced", 0),
                ]),
                top: String::new(),
            }))
    };
    assert!(story(2, 0).found().is_empty());
    assert!(story(3, 0).found().is_empty());
    assert_eq!(story(1, 0).found(), ["counters"]);
    assert_eq!(story(4, 0).found(), ["counters"]);
    assert_eq!(story(2, 1).found(), ["counters"]);
}

#[test]
fn copies_are_equal_but_for_what_was_due() {
    let entry = |holds: &str, expires| Entry {
        value: BTreeMap::from([("a".to_owned(), holds.to_owned())]),
        expires,
    };
    let story = |copy: Option<Entry>| {
        Story::new().with(Record::Copies(Copies {
            server: 1,
            what: "replica".to_owned(),
            at: 1,
            due: 1000,
            original: BTreeMap::from([("0 k".to_owned(), entry("1", 5000))]),
            copy: copy
                .map(|copy| ("0 k".to_owned(), copy))
                .into_iter()
                .collect(),
        }))
    };
    assert!(story(Some(entry("1", 5000))).found().is_empty());
    assert_eq!(story(Some(entry("2", 5000))).found(), ["copies"]);
    assert_eq!(story(Some(entry("1", 5001))).found(), ["copies"]);
    assert_eq!(story(Some(entry("1", -1))).found(), ["copies"]);
    assert_eq!(story(None).found(), ["copies"]);
    assert!(story(Some(entry("1", 900))).found().is_empty());
}

#[test]
fn a_crash_is_found() {
    let crash = Crash {
        server: 1,
        at: 5,
        text: "signal 11".to_owned(),
    };
    assert_eq!(Story::new().with(Record::Crash(crash)).found(), ["crashes"]);
}
