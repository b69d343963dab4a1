//! A model checker: walks all that a few clients can do to a few keys, breadth
//! first, with the real core. In each state that is reached the core has done what
//! the model did, the promises hold, and, tried here and there, all who wait are
//! served once the holders let go.
//!
//! The path to a state is kept and not the state, which is made again by walking.

use std::collections::{HashSet, VecDeque};

use super::fingerprint::fingerprint;
use super::model::{Kind, Mode, Owner, Place, NEVER};
use super::ops::{Call, Op, Other, Seat, Whose};
use super::random::Run;
use super::world::World;
use crate::lock::Rules;

/// Something that may happen, if it can.
#[derive(Clone, Debug)]
pub enum Action {
    Do(Op),
    /// The next lease that nobody renews ends.
    NextEnd,
}

pub struct Universe {
    pub name: &'static str,
    pub places: Vec<Place>,
    pub actions: Vec<Action>,
    /// No owner nests deeper.
    pub holds: usize,
    /// The lease that each person asks for.
    pub leases: [i64; 4],
}

/// Owner `a` has two connections.
pub const PEOPLE: [(Owner, Seat); 4] = [("a", 0), ("a", 1), ("b", 2), ("c", 4)];

impl Universe {
    pub fn new(name: &'static str, places: &[Place]) -> Self {
        let mut actions = vec![Action::NextEnd, Action::Do(Op::Confirm)];
        for which in 0..2 {
            for closes in [false, true] {
                actions.push(Action::Do(Op::Lose { which, closes }));
            }
        }
        let close = |(_, seat)| Action::Do(Op::Close(seat));
        actions.extend(PEOPLE.map(close));
        Self {
            name,
            places: places.to_vec(),
            actions,
            holds: 1,
            leases: [100; 4],
        }
    }

    /// These people ask for these keys in this mode, and give them back.
    pub fn asks(&mut self, people: &[usize], keys: &[Place], mode: Mode, watch: bool) {
        for who in people {
            let (owner, seat) = PEOPLE[*who];
            let call = Call {
                keys: keys.to_vec(),
                owner,
                seat,
                mode,
                lease: self.leases[*who],
                once: false,
                watch,
                block: Some(0),
            };
            self.actions.push(Action::Do(Op::Acquire(call)));
        }
    }

    pub fn gives_back(&mut self, people: &[usize], at: Place, mode: Mode) {
        for (owner, seat) in people.iter().map(|who| PEOPLE[*who]) {
            let whose = Whose {
                held: None,
                at,
                owner,
                mode,
                seat,
                own_seat: true,
            };
            let op = Op::Release { whose, all: false };
            self.actions.push(Action::Do(op));
        }
    }

    pub fn others(&mut self, what: Other) {
        let op = Op::Other { what, late: false };
        self.actions.push(Action::Do(op));
    }

    /// The step to take, if there is one that changes anything.
    fn step(&self, world: &World, action: &Action) -> Option<Op> {
        let model = &world.model;
        let waits = |seat: Seat| {
            let client = world.seats[seat];
            model.queue.iter().any(|w| w.ask.client == client)
        };
        let granted = |seat: Seat| {
            let client = world.seats[seat];
            model.grants.iter().any(|grant| grant.client == client)
        };
        let can = match action {
            // A reply does not take that long.
            Action::NextEnd if !model.grants.is_empty() => return None,
            Action::NextEnd => return next_end(world),
            Action::Do(Op::Acquire(call)) => {
                let count = |place: &Place| model.count(*place, call.owner, call.mode);
                let most = call.keys.iter().map(count).max().unwrap();
                !waits(call.seat) && !granted(call.seat) && most < self.holds
            }
            Action::Do(Op::Release { whose, .. }) => {
                let count = model.count(whose.at, whose.owner, whose.mode);
                count > 0 && !waits(whose.seat) && !granted(whose.seat)
            }
            Action::Do(Op::Close(seat)) => {
                let client = Some(world.seats[*seat]);
                let watches = |h: &super::model::Hold| h.client == client && h.watch.is_some();
                waits(*seat) || granted(*seat) || model.holds.iter().any(watches)
            }
            Action::Do(Op::Lose { which, .. }) => *which < model.grants.len(),
            Action::Do(Op::Confirm) => !model.grants.is_empty(),
            Action::Do(Op::Other { what, .. }) => match what {
                Other::Del(place) | Other::Expire(place, _) => model.kind(*place).is_some(),
                Other::Set(place, _) => model.kind(*place) != Some(Kind::Text),
                _ => true,
            },
            Action::Do(_) => true,
        };
        match action {
            Action::Do(op) if can => Some(op.clone()),
            _ => None,
        }
    }
}

fn next_end(world: &World) -> Option<Op> {
    let model = &world.model;
    let watched = |hold: &&super::model::Hold| model.watched(hold.place, hold.owner).is_none();
    let held = model.holds.iter().filter(watched);
    let ends = held.map(|hold| model.ends(hold.place, hold.owner));
    let texts = model.keys.values().filter(|slot| slot.kind == Kind::Text);
    let first = ends.chain(texts.map(|slot| slot.ends)).min()?;
    (first != NEVER).then(|| Op::Pass {
        us: (first + 1 - model.now_ms()) * 1000,
        cycle: false,
        fires: true,
    })
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub states: usize,
    pub steps: usize,
    pub depth: usize,
    /// Nothing was left to walk.
    pub whole: bool,
}

/// Walks at most so many states, nearest first.
pub fn walk(universe: &Universe, rules: Rules, most: usize, drains: u64) -> Seen {
    let mut seen = Seen::default();
    let mut known = HashSet::new();
    let mut paths = VecDeque::from([Vec::<u8>::new()]);
    while let Some(path) = paths.pop_front() {
        let run = replay(universe, rules, &path);
        seen.depth = path.len();
        for (number, action) in universe.actions.iter().enumerate() {
            let Some(op) = universe.step(&run.world, action) else {
                continue;
            };
            let mut path = path.clone();
            path.push(number as u8);
            let trail = Trail(universe, rules, &path);
            let mut next = run.clone();
            next.step(&op);
            seen.steps += 1;
            let print = fingerprint(&next.world);
            if known.len() >= most || !known.insert(print) {
                continue;
            }
            if print.is_multiple_of(drains) {
                next.drain();
            }
            drop(trail);
            paths.push_back(path);
        }
        if known.len() >= most {
            break;
        }
    }
    seen.states = known.len();
    seen.whole = paths.is_empty();
    println!("{}: {seen:?}", universe.name);
    seen
}

fn replay(universe: &Universe, rules: Rules, path: &[u8]) -> Run {
    let mut run = Run::start(rules, &universe.places);
    for number in path {
        let op = universe.step(&run.world, &universe.actions[usize::from(*number)]);
        run.step(&op.unwrap());
    }
    run
}

/// Shown when a step on the way fails.
struct Trail<'a>(&'a Universe, Rules, &'a [u8]);

impl Drop for Trail<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, {:?}:", self.0.name, self.1);
            for number in self.2 {
                eprintln!("  {:?}", self.0.actions[usize::from(*number)]);
            }
        }
    }
}
