//! Walks all states breadth first, so that a way to a broken promise is as short as any.

use crate::attempt::Phase;
use crate::rules::{Goal, Promise, World};
use crate::state::State;
use crate::step::steps;
use crate::trace;
use crate::twins::Twins;

#[derive(Debug)]
pub struct Seen {
    pub states: usize,
    pub steps: usize,
    pub depth: usize,
    /// Nothing was left to walk.
    pub whole: bool,
    pub goals: Vec<Goal>,
    pub broken: Option<Broken>,
}

#[derive(Debug)]
pub struct Broken {
    pub promise: Promise,
    /// The way there, in words.
    pub way: Vec<String>,
}

/// Walks at most about so many states.
pub fn walk(world: &World, most: usize) -> Seen {
    let twins = Twins::new(world);
    let mut known = Known::default();
    known.add(twins.first(&State::default()), 0);
    let mut seen = Seen {
        states: 1,
        steps: 0,
        depth: 0,
        whole: false,
        goals: Vec::new(),
        broken: None,
    };
    let mut found = Vec::new();
    let (mut at, mut layer) = (0, 1);
    while at < known.states.len() && known.states.len() < most {
        if at == layer {
            layer = known.states.len();
            seen.depth += 1;
        }
        let state = known.states[at];
        found.clear();
        steps(world, &state, &mut found);
        for (_, raw) in &found {
            seen.steps += 1;
            let next = twins.first(&raw.settled());
            if !known.add(next, at as u32) {
                continue;
            }
            reach(world, &next, &mut seen.goals);
            let broken = world
                .promises
                .iter()
                .find(|promise| next.is_broken(world, **promise));
            if let Some(promise) = broken {
                let way = trace::words(world, &twins, &known.way(known.states.len() - 1));
                seen.broken = Some(Broken {
                    promise: *promise,
                    way,
                });
                seen.states = known.states.len();
                return seen;
            }
        }
        at += 1;
    }
    seen.states = known.states.len();
    seen.whole = at == known.states.len();
    seen
}

fn reach(world: &World, state: &State, goals: &mut Vec<Goal>) {
    let attempts = || state.attempts.iter();
    let held = attempts().any(|a| a.phase == Phase::Held);
    let over = attempts().any(|a| a.phase == Phase::Over && a.given);
    let mut add = |goal, reached: bool| {
        if reached && !goals.contains(&goal) {
            goals.push(goal);
        }
    };
    add(Goal::Held, held);
    add(Goal::Second, held && over);
    // More servers count than the first majority had.
    let more = |i: usize| state.attempts[i].counts() > world.client(i).quorum;
    add(Goal::Rejoined, (0..world.tries()).any(more));
}

/// The states that were reached, each with the one that it was reached from.
#[derive(Default)]
struct Known {
    states: Vec<State>,
    from: Vec<u32>,
    /// Where each stands, plus 1, by its hash.
    places: Vec<u32>,
}

impl Known {
    /// Whether the state is new.
    fn add(&mut self, state: State, from: u32) -> bool {
        if self.states.len() * 2 >= self.places.len() {
            self.grow();
        }
        let place = self.place(&state);
        if self.places[place] != 0 {
            return false;
        }
        self.states.push(state);
        self.from.push(from);
        self.places[place] = self.states.len() as u32;
        true
    }

    fn place(&self, state: &State) -> usize {
        let most = self.places.len() - 1;
        let mut place = hash(state) & most;
        while let Some(at) = (self.places[place] as usize).checked_sub(1) {
            if self.states[at] == *state {
                break;
            }
            place = (place + 1) & most;
        }
        place
    }

    fn grow(&mut self) {
        self.places = vec![0; (self.places.len() * 2).max(1 << 16)];
        for at in 0..self.states.len() {
            let place = self.place(&self.states[at]);
            self.places[place] = at as u32 + 1;
        }
    }

    /// The states on the way to this one.
    fn way(&self, mut at: usize) -> Vec<State> {
        let mut way = vec![self.states[at]];
        while at > 0 {
            at = self.from[at] as usize;
            way.push(self.states[at]);
        }
        way.reverse();
        way
    }
}

/// Many states are looked up, and each has a hundred small fields.
fn hash(state: &State) -> usize {
    let mut mixed = 0u64;
    let mut mix =
        |word: u64| mixed = (mixed.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for s in &state.servers {
        mix(u64::from_le_bytes([
            s.counter, s.owner, s.token, s.age, s.shut, s.clock, 0, 0,
        ]));
    }
    for a in &state.attempts {
        let flags = u8::from(a.given) | u8::from(a.lapsed) << 1 | u8::from(a.behind) << 2;
        mix(u64::from_le_bytes([
            a.phase as u8,
            a.since,
            a.token,
            a.servers,
            a.released,
            flags,
            0,
            0,
        ]));
        mix(u64::from(u32::from_le_bytes(a.counted)) << 32 | u64::from(u32::from_le_bytes(a.sent)));
    }
    mix(u64::from(state.stored) << 8 | u64::from(state.broken));
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ (mixed >> 32)) as usize
}
