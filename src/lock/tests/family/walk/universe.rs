//! What may happen in a walk: who may ask for what, and what may come between.

use std::collections::BTreeSet;

use super::names::{Labels, Names};
use super::taken::{call, end, end_all, named, renew, silence, whose, PATIENCE};
use crate::lock::tests::family::model::{Hold, Kind, Mode, Owner, Place, Share, Waiter};
use crate::lock::tests::family::ops::{Call, Op, Other, Renewing, Seat, Words, OWNERS, SEATS};
use crate::lock::tests::family::world::World;

/// So long that none ends by itself: they are ended one by one.
pub const LEASE: i64 = 1_000_000_000;

/// Something that may happen, if it can.
#[derive(Clone, Debug)]
pub enum Action {
    Do(Op),
    /// This owner's lease ends, alone.
    End(Place, Owner),
    /// All leases end that nobody renews.
    EndAll,
    /// The same, and nobody says anything for longer than any connection may be silent.
    Silence,
}

pub struct Universe {
    pub name: &'static str,
    pub places: Vec<Place>,
    pub actions: Vec<Action>,
    /// What may change places with what, and all stays the same.
    pub names: Vec<Names>,
    /// Some ask with NOTIFY.
    tells: bool,
    /// Some are silent.
    hears: bool,
}

/// Owner `a` has two connections.
pub const PEOPLE: [(Owner, Seat); 4] = [("a", 0), ("a", 1), ("b", 2), ("c", 4)];
/// Nobody waits there.
pub const SPARE: Seat = SEATS - 1;

impl Universe {
    pub fn new(name: &'static str, places: &[Place]) -> Self {
        let mut actions = vec![Action::EndAll, Action::Do(Op::Confirm)];
        for which in 0..2 {
            for closes in [false, true] {
                actions.push(Action::Do(Op::Lose { which, closes }));
            }
        }
        let close = |(_, seat)| Action::Do(Op::Close(seat));
        actions.extend(PEOPLE.map(close));
        for place in places {
            actions.extend(OWNERS.map(|owner| Action::End(*place, owner)));
        }
        Self {
            name,
            places: places.to_vec(),
            actions,
            names: vec![Names::plain(places)],
            tells: false,
            hears: false,
        }
    }

    pub fn labels(&self) -> Vec<Labels> {
        let names = self.names.iter();
        names
            .map(|names| Labels::new(names, self.tells, self.hears))
            .collect()
    }

    /// These people ask for these keys in this mode.
    pub fn asks(&mut self, people: &[usize], keys: &[Place], mode: Mode, watch: bool) {
        for who in people {
            let call = call(*who, keys, mode, watch);
            self.actions.push(Action::Do(Op::Acquire(call)));
        }
    }

    /// These people ask for so many permits of two.
    pub fn asks_for_permits(&mut self, people: &[usize], at: Place, count: usize, watch: bool) {
        // By which connection an owner took which of its permits makes a difference.
        self.tells = true;
        for who in people {
            let share = Share { limit: 2, count };
            let call = call(*who, &[at], Mode::Permits, watch);
            self.actions
                .push(Action::Do(Op::Acquire(Call { share, ..call })));
        }
    }

    /// The limit of a lock is changed.
    pub fn is_limited(&mut self, at: Place, limits: &[usize]) {
        for limit in limits.iter().copied() {
            self.actions.push(Action::Do(Op::Limit { at, limit }));
        }
    }

    /// The same by QUEUE and NOTIFY.
    pub fn queues(&mut self, people: &[usize], keys: &[Place], mode: Mode, watch: bool) {
        for who in people {
            let call = call(*who, keys, mode, watch);
            self.told(call, 0, false);
        }
    }

    /// The same with WANTED.
    pub fn wants_to_know(&mut self, people: &[usize], keys: &[Place], mode: Mode) {
        for who in people {
            let call = call(*who, keys, mode, false);
            self.told(call, 0, true);
        }
    }

    /// With ONCE, and so perhaps once more, on this channel.
    pub fn queues_once(&mut self, people: &[usize], at: Place, watch: bool, channel: u8) {
        for who in people {
            let call = call(*who, &[at], Mode::Plain, watch);
            self.told(Call { once: true, ..call }, channel, false);
        }
    }

    fn told(&mut self, call: Call, channel: u8, wanted: bool) {
        self.tells = true;
        // The tag is chosen when the time comes.
        let tag = 0;
        let notify = Some(Words {
            channel,
            tag,
            wanted,
        });
        self.actions.push(Action::Do(Op::Acquire(Call {
            queue: true,
            notify,
            ..call
        })));
    }

    /// Anybody's waits for this key are called off.
    pub fn cancels(&mut self, at: Place) {
        for owner in OWNERS {
            let (which, mode) = (None, None);
            self.actions.push(Action::Do(Op::Cancel {
                which,
                at,
                owner,
                mode,
            }));
        }
    }

    /// Connections go deaf, and hear again.
    pub fn go_deaf(&mut self, people: &[usize]) {
        for (_, seat) in people.iter().map(|who| PEOPLE[*who]) {
            for hears in [false, true] {
                let which = None;
                self.actions
                    .push(Action::Do(Op::Hears { which, seat, hears }));
            }
        }
    }

    /// These say that they are alive, and all are silent for a while.
    pub fn say_that_they_are_alive(&mut self, people: &[usize]) {
        self.hears = true;
        self.actions
            .retain(|action| !matches!(action, Action::EndAll));
        self.actions.push(Action::Silence);
        for (_, seat) in people.iter().map(|who| PEOPLE[*who]) {
            let says = Op::Heartbeat(seat, PATIENCE);
            self.actions.push(Action::Do(says));
        }
    }

    /// The server is made a replica for a while.
    pub fn is_demoted(&mut self) {
        self.actions.push(Action::Do(Op::Demote));
    }

    pub fn gives_back(&mut self, people: &[usize], at: Place, mode: Mode) {
        for (owner, seat) in people.iter().map(|who| PEOPLE[*who]) {
            let whose = whose(at, owner, mode, seat);
            let op = Op::Release {
                whose,
                by: Some(1),
                only: None,
            };
            self.actions.push(Action::Do(op));
        }
    }

    /// These people ask for a new token for what they hold.
    pub fn renews_tokens(&mut self, people: &[usize], at: Place, mode: Mode) {
        for (owner, seat) in people.iter().map(|who| PEOPLE[*who]) {
            let whose = whose(at, owner, mode, seat);
            let op = renew(whose, LEASE, true);
            self.actions.push(Action::Do(op));
        }
    }

    pub fn others(&mut self, what: Other) {
        let op = Op::Other { what, late: false };
        self.actions.push(Action::Do(op));
    }

    /// `b` and `c` do the same things, and so do the two connections of `a`.
    pub fn all_are_the_same(&mut self) {
        self.also(|names| names.seats.swap(0, 1));
        self.two_are_the_same();
    }

    /// `b` and `c` do.
    pub fn two_are_the_same(&mut self) {
        self.also(|names| {
            names.owners.swap(1, 2);
            names.seats.swap(2, 4);
        });
    }

    /// The same is done to these two places.
    pub fn are_the_same(&mut self, one: usize, other: usize) {
        self.also(|names| names.places.swap(one, other));
    }

    /// This change too, and whatever it makes together with those before.
    fn also(&mut self, change: impl Fn(&mut Names)) {
        let mut new = Names::plain(&self.places);
        change(&mut new);
        self.names.push(new);
        loop {
            let all: BTreeSet<Names> = self.names.iter().cloned().collect();
            let after = |one: &Names| all.iter().map(|n| n.after(one)).collect::<Vec<_>>();
            let more: BTreeSet<Names> = all.iter().flat_map(after).collect();
            let whole = more.len() == self.names.len();
            self.names = more.into_iter().collect();
            if whole {
                break;
            }
        }
    }

    /// Those who change places can do the same.
    pub fn check_names(&self) {
        let show = |action: &Action| format!("{action:?}");
        let all: BTreeSet<String> = self.actions.iter().map(show).collect();
        assert_eq!(all.len(), self.actions.len(), "twice the same");
        for names in &self.names {
            for action in &self.actions {
                let other = self.renamed(action, names);
                assert!(all.contains(&show(&other)), "{other:?} cannot be done");
            }
        }
    }

    fn renamed(&self, action: &Action, names: &Names) -> Action {
        let plain = Names::plain(&self.places);
        let owner = |owner: &mut Owner| {
            let at = plain.owners.iter().position(|other| other == owner);
            *owner = names.owners[at.unwrap()];
        };
        let place = |place: &mut Place| {
            let at = plain.places.iter().position(|other| other == place);
            *place = names.places[at.unwrap()];
        };
        let mut action = action.clone();
        match &mut action {
            Action::End(at, who) => {
                place(at);
                owner(who);
            }
            Action::Do(Op::Acquire(call)) => {
                call.keys.iter_mut().for_each(place);
                call.keys.sort_unstable();
                owner(&mut call.owner);
                call.seat = names.seats[call.seat];
            }
            Action::Do(Op::Release { whose, .. } | Op::Renew(Renewing { whose, .. })) => {
                place(&mut whose.at);
                owner(&mut whose.owner);
                whose.seat = names.seats[whose.seat];
            }
            Action::Do(Op::Cancel { at, owner: who, .. }) => {
                place(at);
                owner(who);
            }
            Action::Do(Op::Limit { at, .. }) => place(at),
            Action::Do(Op::Close(seat) | Op::Hears { seat, .. } | Op::Heartbeat(seat, _)) => {
                *seat = names.seats[*seat]
            }
            Action::Do(Op::Other { .. }) => assert_eq!(self.names.len(), 1, "not renamed"),
            Action::Do(_) | Action::EndAll | Action::Silence => {}
        }
        action
    }

    /// The steps to take, if there are any that change anything.
    pub fn ops(&self, world: &World, number: usize) -> Option<Vec<Op>> {
        let model = &world.model;
        let waits = |seat: Seat| {
            let client = world.seats[seat];
            model.queue.iter().any(|w| w.ask.client == client)
        };
        let granted = |seat: Seat| {
            let client = world.seats[seat];
            model.grants.iter().any(|grant| grant.client == client)
        };
        // Who waits by QUEUE goes on.
        let cannot_speak = |seat: Seat| {
            let client = world.seats[seat];
            let mut waits = model.queue.iter().filter(|w| !w.ask.queue);
            let mut grants = model.grants.iter().filter(|grant| !grant.queue);
            waits.any(|w| w.ask.client == client) || grants.any(|g| g.client == client)
        };
        let action = &self.actions[number];
        let can = match action {
            // A reply does not take that long.
            Action::End(..) | Action::EndAll if !model.grants.is_empty() => return None,
            Action::End(place, owner) => return end(world, *place, owner),
            Action::EndAll => return end_all(world),
            Action::Silence => return silence(world),
            Action::Do(Op::Acquire(call)) => {
                // No owner nests in the mode that it has: what a state is rests on it.
                let has = |place: &Place| model.count(*place, call.owner, call.mode) > 0;
                // Of permits there are so many and no more.
                let may_have_more = call.once || call.mode == Mode::Permits;
                if cannot_speak(call.seat) || !may_have_more && call.keys.iter().any(has) {
                    return None;
                }
                // Else any number of grants could be under way.
                if granted(call.seat) && !call.keys.iter().all(has) {
                    return None;
                }
                return Some(vec![Op::Acquire(named(world, call)?)]);
            }
            Action::Do(Op::Release { whose, .. } | Op::Renew(Renewing { whose, .. })) => {
                let count = model.count(whose.at, whose.owner, whose.mode);
                count > 0 && !cannot_speak(whose.seat)
            }
            Action::Do(Op::Close(seat)) => waits(*seat) || granted(*seat) || is_bound(world, *seat),
            Action::Do(Op::Cancel { at, owner, .. }) => {
                let its = |w: &Waiter| w.ask.owner == *owner && w.ask.keys.contains(at);
                model.queue.iter().any(its)
            }
            Action::Do(Op::Hears { seat, hears, .. }) => {
                let is_deaf = model.deaf.contains(&world.seats[*seat]);
                is_deaf == *hears && (*hears || waits(*seat))
            }
            Action::Do(Op::Heartbeat(seat, _)) => {
                !model.is_heard(world.seats[*seat]) && !cannot_speak(*seat)
            }
            Action::Do(Op::Demote) => !model.holds.is_empty() || !model.queue.is_empty(),
            Action::Do(Op::Limit { at, limit }) => model
                .limits
                .get(at)
                .is_some_and(|known| known.now != *limit),
            Action::Do(Op::Lose { which, .. }) => *which < model.grants.len(),
            Action::Do(Op::Confirm) => !model.grants.is_empty(),
            Action::Do(Op::Other { what, .. }) => changes_anything(world, *what),
            Action::Do(_) => true,
        };
        match action {
            Action::Do(op) if can => Some(vec![op.clone()]),
            _ => None,
        }
    }
}

fn changes_anything(world: &World, what: Other) -> bool {
    let model = &world.model;
    match what {
        Other::Del(place) | Other::Expire(place, _) => model.kind(place).is_some(),
        Other::Set(place, _) => model.kind(place) != Some(Kind::Text),
        _ => true,
    }
}

/// Whether a hold is watched for a connection, or told to it.
fn is_bound(world: &World, seat: Seat) -> bool {
    let client = Some(world.seats[seat]);
    let watches = |h: &Hold| h.client == client && h.watch.is_some();
    let is_told = |h: &Hold| h.notify.map(|to| to.client) == client;
    let mut holds = world.model.holds.iter();
    holds.any(|h| watches(h) || is_told(h))
}
