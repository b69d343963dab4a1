//! A model checker: walks all that a few clients can do to a few keys, breadth
//! first, with the real core. In each state that is reached the core has done what
//! the model did, the promises hold, and, tried here and there, all who wait are
//! served once the holders let go.
//!
//! Of a state only its fingerprint is kept and the way there; it is made again by
//! going that way. Neighbours share most of it.

mod connections;
mod names;
mod page;
mod plan;
mod taken;
mod twins;
mod universe;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use super::random::Run;
use crate::lock::Rules;
use page::fingerprint;
use universe::{Action, Universe};

#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub states: usize,
    pub steps: usize,
    pub depth: usize,
    /// Nothing was left to walk.
    pub whole: bool,
}

/// Walks at most about so many states, nearest first. In one of `drains` states it
/// is tried whether all are served in the end.
pub fn walk(universe: &Universe, rules: Rules, most: usize, drains: u64) -> Seen {
    universe.check_names();
    let walk = Walk {
        universe,
        rules,
        most,
        drains,
        known: (0..SHARDS).map(|_| Mutex::default()).collect(),
        states: AtomicUsize::new(0),
    };
    let mut seen = Seen::default();
    let mut ways = vec![Way { from: 0, action: 0 }];
    let mut layer = 0..1;
    while !layer.is_empty() && !walk.is_over() {
        let found = walk.expand(&ways, layer.clone());
        layer = ways.len()..ways.len();
        for (steps, mut more) in found {
            seen.steps += steps;
            ways.append(&mut more);
        }
        layer.end = ways.len();
        if layer.end > 100_000 {
            println!("{}: {} states so far", universe.name, layer.end);
        }
        seen.depth += 1;
    }
    seen.states = walk.states.into_inner();
    seen.whole = layer.is_empty();
    println!("{}: {seen:?}", universe.name);
    seen
}

/// Where an action leads, if it can be taken.
fn step(universe: &Universe, run: &Run, number: usize) -> Option<Run> {
    let ops = universe.ops(&run.world, number)?;
    let mut next = run.clone();
    for op in &ops {
        // No two things happen in the same microsecond.
        next.world.pass(1, 1);
        next.step(op);
    }
    Some(next)
}

/// How a state is reached: from another one, by an action.
#[derive(Clone, Copy)]
struct Way {
    from: u32,
    action: u8,
}

const SHARDS: usize = 64;

struct Walk<'a> {
    universe: &'a Universe,
    rules: Rules,
    most: usize,
    drains: u64,
    known: Vec<Mutex<HashSet<u64>>>,
    states: AtomicUsize,
}

type Found = (usize, Vec<Way>);

impl Walk<'_> {
    fn is_over(&self) -> bool {
        self.states.load(Ordering::Relaxed) >= self.most
    }

    /// Whether the state is new.
    fn is_new(&self, print: u64) -> bool {
        let shard = &self.known[print as usize % SHARDS];
        let new = shard.lock().unwrap().insert(print);
        self.states.fetch_add(usize::from(new), Ordering::Relaxed);
        new
    }

    /// One step further from each of these, on all cores.
    fn expand(&self, ways: &[Way], layer: Range<usize>) -> Vec<Found> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let size = layer.len().div_ceil(cores).max(64);
        let parts = layer.clone().step_by(size);
        std::thread::scope(|scope| {
            let part = |start: usize| start..(start + size).min(layer.end);
            let parts = parts.map(|start| scope.spawn(move || self.expand_part(ways, part(start))));
            let parts: Vec<_> = parts.collect();
            let found = parts.into_iter().map(|part| part.join().unwrap());
            found.collect()
        })
    }

    fn expand_part(&self, ways: &[Way], part: Range<usize>) -> Found {
        let mut trail = Trail::new(self, ways);
        let (mut steps, mut found) = (0, Vec::new());
        let labels = self.universe.labels();
        for state in part {
            trail.go_to(state);
            for number in 0..self.universe.actions.len() {
                if self.is_over() {
                    return (steps, found);
                }
                let Some(next) = trail.step(number) else {
                    continue;
                };
                steps += 1;
                let print = fingerprint(&next.world, &next.promises, &labels);
                if !self.is_new(print) {
                    continue;
                }
                if print.is_multiple_of(self.drains) {
                    trail.drain(next, number);
                }
                found.push(Way {
                    from: u32::try_from(state).unwrap(),
                    action: u8::try_from(number).unwrap(),
                });
            }
        }
        (steps, found)
    }
}

/// The way to one state, with the states on it.
struct Trail<'a> {
    walk: &'a Walk<'a>,
    ways: &'a [Way],
    runs: Vec<(usize, Run)>,
    /// The action under way.
    last: Option<usize>,
}

impl<'a> Trail<'a> {
    fn new(walk: &'a Walk<'a>, ways: &'a [Way]) -> Self {
        let start = Run::start(walk.rules, &walk.universe.places);
        Self {
            walk,
            ways,
            runs: vec![(0, start)],
            last: None,
        }
    }

    fn go_to(&mut self, state: usize) {
        let mut missing = Vec::new();
        let mut at = state;
        // A way leads from a lower number to a higher one.
        loop {
            while self.runs.last().unwrap().0 > at {
                self.runs.pop();
            }
            if self.runs.last().unwrap().0 == at {
                break;
            }
            missing.push(at);
            at = self.ways[at].from as usize;
        }
        for state in missing.into_iter().rev() {
            let run = self.step(usize::from(self.ways[state].action));
            self.runs.push((state, run.unwrap()));
        }
    }

    fn step(&mut self, number: usize) -> Option<Run> {
        self.last = Some(number);
        let next = step(self.walk.universe, &self.runs.last().unwrap().1, number);
        self.last = None;
        next
    }

    fn drain(&mut self, mut run: Run, number: usize) {
        self.last = Some(number);
        run.drain();
        self.last = None;
    }
}

/// Shown when a step on the way fails.
impl Drop for Trail<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Universe { name, actions, .. } = self.walk.universe;
            let show = |number: usize| -> &Action { &actions[number] };
            eprintln!("{name}, {:?}:", self.walk.rules);
            for (state, _) in &self.runs[1..] {
                eprintln!("  {:?}", show(usize::from(self.ways[*state].action)));
            }
            eprintln!("  {:?}", self.last.map(show));
        }
    }
}
