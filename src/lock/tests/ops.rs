//! The steps of a random run: what clients, clocks and others may do.

use proptest::prelude::*;

use super::model::{Owner, Place};

pub const OWNERS: [Owner; 4] = ["a", "b", "c", "d"];
pub const PLACES: [Place; 4] = [(0, "j"), (0, "k"), (1, "j"), (1, "k")];

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Acquire {
        at: Place,
        owner: Owner,
        lease: i64,
        once: bool,
        block: Option<i64>,
    },
    /// By the holder, if there is one, rather than by this owner.
    Release {
        at: Place,
        owner: Owner,
        by_holder: bool,
        all: bool,
    },
    Renew {
        at: Place,
        owner: Owner,
        by_holder: bool,
        lease: i64,
    },
    Force(Place),
    /// One of those who wait disconnects.
    Leave(usize),
    /// One of the grants under way loses its client.
    Lose(usize),
    /// All replies are out.
    Confirm,
    /// Time passes on both clocks; the timer fires then, or comes late.
    Pass {
        us: i64,
        fires: bool,
    },
    /// The wall clock is set forward, or back.
    Set {
        ms: i64,
    },
    /// Somebody else does something; rlock hears of it after the command (7.2 and
    /// later), or with its next command or timer (7.0).
    Other {
        what: Other,
        late: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Other {
    Del(Place),
    Evict(Place),
    Expire(Place, Option<i64>),
    Set(Place, Option<i64>),
    Rename(Place, Place),
    Take(Place, Owner, i64),
    Flush(Option<i32>),
    Swap(i32, i32),
    ExpireCycle,
}

fn place() -> impl Strategy<Value = Place> {
    // Mostly one key, so that queues form.
    prop_oneof![3 => Just(PLACES[1]), 2 => prop::sample::select(&PLACES[..])]
}

fn owner() -> impl Strategy<Value = Owner> {
    prop::sample::select(&OWNERS[..])
}

fn lease() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 1..60i64, 2 => 60..400i64]
}

fn other() -> impl Strategy<Value = Other> {
    prop_oneof![
        3 => place().prop_map(Other::Del),
        1 => place().prop_map(Other::Evict),
        2 => (place(), lease()).prop_map(|(at, ms)| Other::Expire(at, Some(ms))),
        2 => place().prop_map(|at| Other::Expire(at, None)),
        2 => (place(), prop::option::of(lease())).prop_map(|(at, ms)| Other::Set(at, ms)),
        3 => (place(), place()).prop_map(|(from, to)| Other::Rename(from, to)),
        2 => (place(), owner(), lease()).prop_map(|(at, o, ms)| Other::Take(at, o, ms)),
        1 => prop::option::of(0..2i32).prop_map(Other::Flush),
        1 => Just(Other::Swap(0, 1)),
        1 => Just(Other::ExpireCycle),
    ]
}

/// A whole run, shown with one step a line.
#[derive(Clone)]
pub struct Steps(pub Vec<Op>);

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "\n  {op:?}"))
    }
}

pub fn steps() -> impl Strategy<Value = Steps> {
    prop::collection::vec(op(), 1..100).prop_map(Steps)
}

fn op() -> impl Strategy<Value = Op> {
    let block = prop_oneof![2 => Just(None), 2 => Just(Some(0)), 4 => (1..150i64).prop_map(Some)];
    let mostly = || prop::bool::weighted(0.8);
    prop_oneof![
        12 => (place(), owner(), lease(), prop::bool::weighted(0.25), block).prop_map(
            |(at, owner, lease, once, block)| Op::Acquire { at, owner, lease, once, block }
        ),
        6 => (place(), owner(), mostly(), prop::bool::weighted(0.3)).prop_map(
            |(at, owner, by_holder, all)| Op::Release { at, owner, by_holder, all }
        ),
        2 => (place(), owner(), mostly(), lease()).prop_map(
            |(at, owner, by_holder, lease)| Op::Renew { at, owner, by_holder, lease }
        ),
        1 => place().prop_map(Op::Force),
        1 => (0..8usize).prop_map(Op::Leave),
        2 => (0..4usize).prop_map(Op::Lose),
        1 => Just(Op::Confirm),
        6 => (0..60_000i64, mostly()).prop_map(|(us, fires)| Op::Pass { us, fires }),
        1 => (-300..300i64).prop_map(|ms| Op::Set { ms }),
        5 => (other(), prop::bool::weighted(0.3)).prop_map(|(what, late)| {
            // Of a key that was SET over only its TTL is heard: read after that
            // has run out, it looks like a lease cut short.
            let late = late && !matches!(what, Other::Set(..) | Other::Expire(..));
            Op::Other { what, late }
        }),
    ]
}
