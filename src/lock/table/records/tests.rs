//! Records come and go in any order, and each is found where it is.

use std::collections::BTreeMap;

use super::*;
use crate::lock::{Token, WallUs};

/// Few parts are used, so that each grows and shrinks.
fn hash(number: u32) -> u64 {
    u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) & !(0xF8 << 32)
}

fn name(number: u32) -> Vec<u8> {
    format!("lock {number}").into_bytes()
}

fn put(records: &mut Records, number: u32, ends: i64) {
    let new = New {
        name: &name(number),
        owner: b"owner",
        begun: Begun {
            token: Token(i64::from(number)),
            since: WallUs(0),
        },
        client: None,
        ends: WallMs(ends),
        stamp: 0,
    };
    records.insert(hash(number), new);
}

#[test]
fn each_is_found_whatever_comes_and_goes() {
    let (mut records, mut known) = (Records::default(), BTreeMap::new());
    let mut random = 1_u32;
    let mut next = |most: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % most
    };
    for most in [5000, 40, 3000, 1] {
        while known.len() != most {
            let (number, ends) = (next(20_000), i64::from(next(500)));
            match known.remove(&number) {
                Some(_) => {
                    let row = records.find(hash(number), &name(number));
                    let gone = records.remove(row.expect("it is there")).expect("it is");
                    assert_eq!(gone.begun.token, Token(i64::from(number)));
                }
                None if known.len() < most => {
                    put(&mut records, number, ends);
                    known.insert(number, ends);
                }
                None => assert_eq!(records.find(hash(number), &name(number)), None),
            }
        }
        records.check();
        let first = records.first().map(|(_, first)| first.ends.0);
        assert_eq!(first, known.values().min().copied());
    }
}

#[test]
fn what_was_seen_is_let_go_when_something_changes() {
    let mut records = Records::default();
    for number in 0..3 {
        put(&mut records, number, 0);
    }
    for row in 0..3 {
        assert!(records.entry(row).is_some());
    }
    assert!(records.iter().all(|record| record.seen.get().is_some()));
    records.remove(0);
    assert!(records.iter().all(|record| record.seen.get().is_none()));
}
