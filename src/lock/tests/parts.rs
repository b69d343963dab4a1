//! Parts of the core by themselves: what each promises that no request shows at once.

use std::collections::BTreeMap;

use super::shell::{key, Shell};
use crate::lock::away::Away;
use crate::lock::deadlines::Deadlines;
use crate::lock::heard::Heard;
use crate::lock::key::exchanged;
use crate::lock::kind;
use crate::lock::memory::{Fields, Value};
use crate::lock::queue::Queues;
use crate::lock::table::Locks;
use crate::lock::work::Work;
use crate::lock::{Cause, Core, Foreign, Key, Kind, Mode, Refusal, WakeTarget, WallMs};

fn hash(fields: &[(&str, &str)]) -> Fields {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let fields = fields
        .iter()
        .map(|(name, value)| (bytes(name), bytes(value)));
    fields.collect()
}

#[test]
fn a_core_that_knows_nothing_is_to_be_woken_for_nothing() {
    let core = Core::default();
    assert!(core.is_idle() && !core.has_due() && core.away.is_empty());
    assert!(!core.is_watching() && !core.has_places());
    assert_eq!(
        (core.next_end(), core.next_turn(), core.next_timeout()),
        (None, None, None)
    );
}

#[test]
fn keys_that_are_away_are_looked_at_in_rounds() {
    let [a, b, c] = ["a", "b", "c"].map(|name| key(0, name));
    let mut away = Away::default();
    assert!(away.is_empty());
    for key in [&a, &b, &c] {
        away.look_again(key);
    }
    assert_eq!(away.take(2), [a.clone(), b]);
    // One that is still to be looked at in this round is not put into the next one too.
    away.look_again(&c);
    away.look_again(&a);
    assert_eq!(away.take(9), [c]);
    assert!(!away.is_empty());
    assert_eq!(away.take(9), [a]);
    assert!(away.is_empty());
}

#[test]
fn moments_before_a_limit_are_given_out_behind_a_place() {
    let mut all: Deadlines<WallMs, u8> = Deadlines::default();
    for (what, at) in [(1, 10), (2, 10), (3, 20), (4, 30)] {
        all.change(&what, None, Some(WallMs(at)));
    }
    let pair = |what, at| (WallMs(at), what);
    // What ends at a moment is there until it is over.
    assert_eq!(all.between(None, WallMs(20), 9), [pair(1, 10), pair(2, 10)]);
    assert_eq!(
        all.between(Some(&pair(1, 10)), WallMs(21), 9),
        [pair(2, 10), pair(3, 20)]
    );
    assert_eq!(all.between(None, WallMs(99), 1), [pair(1, 10)]);
    assert_eq!(all.at(WallMs(20), 9), [1, 2, 3]);
    all.retain(|what| *what != 1);
    assert_eq!(all.at(WallMs(20), 9), [2, 3]);
}

#[test]
fn of_two_databases_that_are_exchanged_each_is_the_other() {
    assert_eq!([0, 1, 2, 3].map(|db| exchanged(db, 1, 3)), [0, 3, 2, 1]);
}

#[test]
fn what_was_heard_of_a_key_goes_with_its_database() {
    let (mut heard, locks) = (Heard::default(), Locks::default());
    let queues = Queues::default();
    heard.of(key(0, "a"), Cause::Removed);
    heard.of(key(2, "c"), Cause::Removed);
    heard.swapped(0, 1);
    assert_eq!(
        heard.next_keys(&locks, &queues, 9),
        [key(1, "a"), key(2, "c")]
    );
}

#[test]
fn keys_of_which_something_was_heard_are_given_out_some_at_a_time() {
    let (mut heard, locks) = (Heard::default(), Locks::default());
    let queues = Queues::default();
    let names = ["c", "a", "b"].map(|name| key(0, name));
    for key in &names {
        heard.of(key.clone(), Cause::Unknown);
    }
    assert_eq!(heard.next_keys(&locks, &queues, 2), names[..2]);
    assert_eq!(heard.next_keys(&locks, &queues, 2), names[2..]);
}

#[test]
fn all_keys_that_work_is_left_on_are_named_once() {
    let [a, b] = ["a", "b"].map(|name| key(0, name));
    let mut work = Work::default();
    assert_eq!(work.keys(), [] as [Key; 0]);
    work.dirty.insert(b.clone());
    work.freed.insert(b.clone(), WakeTarget::One);
    work.risen.insert((a.clone(), b"o".as_slice().into()));
    assert_eq!(work.keys(), [a, b.clone()]);
    work.forget(&b);
    assert_eq!(work.keys().len(), 1);
}

#[test]
fn a_mode_alone_is_a_lock_whose_holders_are_gone() {
    let look = kind::look(&hash(&[("mode", "write")]), b"o", Some(WallMs(5)));
    assert_eq!((look.kind, look.fields), (Kind::ReadWrite(Mode::Write), 0));
    assert_eq!(look.expires, Some(WallMs(5)));
    // With another value it is nobody's mode, and no count either.
    let look = kind::look(&hash(&[("mode", "x")]), b"o", None);
    assert_eq!(look.kind, Kind::Foreign(Foreign::OtherHash));
}

#[test]
fn a_field_that_nobody_can_hold_by_is_no_hold() {
    let fields = [
        ("mode", "read"),
        ("", "1"),
        ("o", "2"),
        (":write", "1"),
        ("o:write:write", "1"),
    ];
    let holders = kind::holders(&hash(&fields), None, usize::MAX);
    let found = holders
        .iter()
        .map(|holder| (&holder.owner[..], holder.mode, holder.holds));
    assert_eq!(found.collect::<Vec<_>>(), [(&b"o"[..], Mode::Read, 2)]);
}

/// A read/write lock of a reader whose lease keys are gone, in a hash that ends then.
fn dead_reader(ends: Option<WallMs>) -> Result<usize, Refusal> {
    let mut shell = Shell::new();
    let at = key(0, "lock");
    let value = Value::Hash(hash(&[("mode", "read"), ("o", "1")]));
    shell.ks.keys = BTreeMap::from([(at.clone(), (value, ends))]);
    let now = shell.now;
    let holders = shell.core.holders_of(&mut shell.ks, now, &at, usize::MAX);
    holders.map(|holders| holders.len())
}

#[test]
fn a_lock_of_dead_readers_has_no_holders_and_without_an_end_is_no_lock() {
    assert_eq!(dead_reader(Some(WallMs(i64::MAX))), Ok(0));
    assert!(matches!(dead_reader(None), Err(Refusal::NotALock { .. })));
}
