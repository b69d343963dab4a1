//! A lock whose slot moves from one node to another, key by key, while its owners go on:
//! nobody who holds it loses it, nobody gets in beside those, and no key is made twice.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::shell::{by, key, Shell};
use crate::lock::memory::lease_key;
use crate::lock::{Cause, Key, Mode, Note, Outcome, Refusal, Slot, Verdict, WaiterId, WallMs};

const OWNERS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire {
        owner: usize,
        write: bool,
        lease: i64,
        block: bool,
    },
    Release {
        owner: usize,
        write: bool,
    },
    Renew {
        owner: usize,
        write: bool,
        lease: i64,
    },
    Pass(i64),
    /// One of the keys that are here goes there.
    Move(usize),
}

/// What clients and time do; with `moves`, the slot moves meanwhile.
fn op(moves: bool) -> impl Strategy<Value = Op> {
    let owner = || 0..OWNERS.len();
    let lease = || prop_oneof![Just(30_i64), Just(200), Just(5000)];
    prop_oneof![
        4 => (owner(), any::<bool>(), lease(), any::<bool>()).prop_map(
            |(owner, write, lease, block)| Op::Acquire { owner, write, lease, block }
        ),
        2 => (owner(), any::<bool>()).prop_map(|(owner, write)| Op::Release { owner, write }),
        2 => (owner(), any::<bool>(), lease())
            .prop_map(|(owner, write, lease)| Op::Renew { owner, write, lease }),
        2 => prop_oneof![Just(1_i64), Just(40), Just(250)].prop_map(Op::Pass),
        u32::from(moves) * 4 => (0..8_usize).prop_map(Op::Move),
    ]
}

/// What an owner was told that it has.
#[derive(Clone, Debug, Default)]
struct Has {
    reads: i64,
    writes: i64,
    until: WallMs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Moving,
    After,
}

struct Nodes {
    here: Shell,
    there: Shell,
    phase: Phase,
    has: BTreeMap<&'static str, Has>,
    waits: BTreeMap<(bool, WaiterId), (&'static str, bool, i64)>,
}

fn lock() -> Key {
    key(0, "r")
}

impl Nodes {
    fn new(counts: bool) -> Self {
        let mut nodes = Self {
            here: Shell::new(),
            there: Shell::new(),
            phase: Phase::Before,
            has: BTreeMap::new(),
            waits: BTreeMap::new(),
        };
        nodes.enter(Phase::Before);
        for node in [&mut nodes.here, &mut nodes.there] {
            node.core.rules.counts = counts;
        }
        nodes
    }

    fn now(&self) -> WallMs {
        self.here.now.wall_ms()
    }

    /// Whether a node is to act on the lock.
    fn acts(&self, here: bool) -> bool {
        match self.phase {
            Phase::Before => here,
            Phase::Moving if here => is_there(&self.here),
            Phase::Moving => is_there(&self.there),
            Phase::After => !here,
        }
    }

    /// Where a client ends up.
    fn node(&mut self) -> (bool, &mut Shell) {
        let here = self.acts(true);
        (
            here,
            if here {
                &mut self.here
            } else {
                &mut self.there
            },
        )
    }

    /// Who is told that it holds the lock still.
    fn lives(&self, owner: &str) -> Option<&Has> {
        let now = self.now();
        let has = self.has.get(owner)?;
        (has.until >= now && has.reads + has.writes > 0).then_some(has)
    }

    fn got(&mut self, owner: &'static str, write: bool, lease: i64) {
        let now = self.now();
        for other in OWNERS.into_iter().filter(|other| *other != owner) {
            if let Some(has) = self.lives(other) {
                let beside = !write && has.writes == 0;
                assert!(beside, "{owner} (write: {write}) beside {other}: {has:?}");
            }
        }
        let fresh = self.lives(owner).is_none();
        let has = self.has.entry(owner).or_default();
        if fresh {
            *has = Has::default();
        }
        *(if write {
            &mut has.writes
        } else {
            &mut has.reads
        }) += 1;
        has.until = has.until.max(now.plus_ms(lease));
    }

    fn carry_out(&mut self, op: Op) {
        match op {
            // Its client is blocked.
            Op::Acquire { owner, .. } | Op::Release { owner, .. } | Op::Renew { owner, .. }
                if self
                    .waits
                    .values()
                    .any(|(waits, ..)| *waits == OWNERS[owner]) => {}
            Op::Acquire { .. } | Op::Release { .. } | Op::Renew { .. } => self.ask(op),
            Op::Pass(ms) => {
                self.here.pass(ms);
                self.there.pass(ms);
                self.here.tick();
                self.there.tick();
            }
            Op::Move(at) => self.go(at),
        }
        self.take_answers();
    }

    fn ask(&mut self, op: Op) {
        match op {
            Op::Acquire {
                owner,
                write,
                lease,
                block,
            } => {
                let owner = OWNERS[owner];
                let request = by(owner).on("r").lease(lease);
                let request = if write {
                    request.write()
                } else {
                    request.read()
                };
                let request = if block { request.block(0) } else { request };
                let (here, node) = self.node();
                match node.acquire(request) {
                    Ok(Verdict::Granted(_)) => self.got(owner, write, lease),
                    Ok(Verdict::Waits(id)) => {
                        self.waits.insert((here, id), (owner, write, lease));
                    }
                    Ok(Verdict::Refused) | Err(_) => {}
                }
            }
            Op::Release { owner, write } => {
                let (owner, mode) = (OWNERS[owner], mode(write));
                let held = self.lives(owner).cloned().unwrap_or_default();
                let held = if write { held.writes } else { held.reads };
                let (_, node) = self.node();
                match node.release_as(&lock(), owner, mode, false) {
                    Ok(left) => {
                        assert_eq!(left, held - 1, "{owner}");
                        let has = self.has.entry(owner).or_default();
                        *(if write {
                            &mut has.writes
                        } else {
                            &mut has.reads
                        }) = left;
                    }
                    Err(refusal) => refused(owner, held, &refusal),
                }
            }
            Op::Renew {
                owner,
                write,
                lease,
            } => {
                let (owner, mode) = (OWNERS[owner], mode(write));
                let held = self.lives(owner).cloned().unwrap_or_default();
                let held = if write { held.writes } else { held.reads };
                let until = self.now().plus_ms(lease);
                let (_, node) = self.node();
                match node.renew_as(&lock(), owner, mode, lease) {
                    Ok(()) => self.has.entry(owner).or_default().until = until,
                    Err(refusal) => refused(owner, held, &refusal),
                }
            }
            Op::Pass(_) | Op::Move(_) => {}
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        (self.here.ks.slot, self.there.ks.slot) = match phase {
            Phase::Before => (Slot::Ours, Slot::Others),
            Phase::Moving => (Slot::Migrating, Slot::Migrating),
            Phase::After => (Slot::Others, Slot::Ours),
        };
    }

    fn go(&mut self, at: usize) {
        self.enter(Phase::Moving);
        let keys: Vec<Key> = self.here.ks.keys.keys().cloned().collect();
        let Some(name) = keys.get(at % keys.len().max(1)).cloned() else {
            return;
        };
        let Some((value, end)) = self.here.ks.keys.remove(&name) else {
            return;
        };
        let now = self.now();
        if end.is_some_and(|end| end < now) {
            return;
        }
        let other = self.there.ks.keys.get(&name);
        let busy = other.is_some_and(|(_, end)| end.is_none_or(|end| end >= now));
        assert!(!busy, "BUSYKEY {name:?}");
        self.there.ks.keys.insert(name.clone(), (value, end));
        if name == lock() {
            self.here.changed(&lock(), Cause::Removed);
        }
        for node in [&mut self.here, &mut self.there] {
            for owner in OWNERS {
                let its = (1..5).any(|i| lease_key(&lock(), owner.as_bytes(), i) == name);
                if its && node.core.knows_reader(0, b"r", owner.as_bytes()) {
                    let note = Note::Reader(lock(), owner.as_bytes().into(), Cause::Removed);
                    node.notes.push(note);
                }
            }
            node.read_notes();
        }
    }

    /// All that is left goes, and the slot has arrived.
    fn arrive(&mut self) {
        while !self.here.ks.keys.is_empty() {
            self.go(0);
        }
        self.enter(Phase::After);
        self.take_answers();
    }

    fn take_answers(&mut self) {
        for here in [true, false] {
            let node = if here {
                &mut self.here
            } else {
                &mut self.there
            };
            for (id, outcome) in node.answers() {
                let Some((owner, write, lease)) = self.waits.remove(&(here, id)) else {
                    continue;
                };
                if let Outcome::Granted(_) = outcome {
                    self.got(owner, write, lease);
                }
            }
        }
    }
}

fn mode(write: bool) -> Mode {
    if write {
        Mode::Write
    } else {
        Mode::Read
    }
}

/// Only who has nothing is told that it has nothing.
#[track_caller]
fn refused(owner: &str, held: i64, refusal: &Refusal) {
    match refusal {
        Refusal::Migrating { .. } => {}
        Refusal::NotHeld { .. } => assert_eq!(held, 0, "{owner} has lost it"),
        other => panic!("{owner}: {other:?}"),
    }
}

fn is_there(node: &Shell) -> bool {
    let now = node.now.wall_ms();
    let hash = node.ks.keys.get(&lock());
    hash.is_some_and(|(_, end)| end.is_none_or(|end| end >= now))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::runs(2000), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_moves_when_it_is_one_lock(
        counts in any::<bool>(),
        before in vec(op(false), 0..12),
        moving in vec(op(true), 0..24),
        after in vec(op(false), 0..8),
    ) {
        let mut nodes = Nodes::new(counts);
        before.into_iter().for_each(|op| nodes.carry_out(op));
        moving.into_iter().for_each(|op| nodes.carry_out(op));
        nodes.arrive();
        nodes.carry_out(Op::Pass(1));
        after.into_iter().for_each(|op| nodes.carry_out(op));
        let live: BTreeSet<&str> = OWNERS.into_iter().filter(|o| nodes.lives(o).is_some()).collect();
        let there: BTreeSet<String> = nodes
            .there
            .core
            .holders_of(&mut nodes.there.ks, nodes.there.now, &lock(), usize::MAX)
            .unwrap_or_default()
            .into_iter()
            .map(|holder| String::from_utf8(holder.owner.to_vec()).unwrap_or_default())
            .collect();
        for owner in live {
            prop_assert!(there.contains(owner), "{owner} is lost: {there:?}");
        }
    }
}
