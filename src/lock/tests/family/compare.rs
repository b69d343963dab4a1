//! Whether the core did what the model did.
//!
//! The specification leaves a few things open; there the core's way is looked at
//! for what it must not do, and taken over by the model: when exactly a watchdog
//! renews, and by how much the hash of a read lock outlasts its readers.

use std::collections::{BTreeMap, BTreeSet};

use super::compare_leases::{same_leases, same_ttl};
use super::compare_permits::same_permits;
use super::compare_sessions::{same_addresses, same_hints, same_losses};
use super::model::{Answer, Hold, Kind, Mode, Owner, Place, Reply, Token, Why, NEVER};
use super::others::lease_key;
use super::shell::{at, mode};
use super::world::{Got, World};
use crate::lock::memory::Value;
use crate::lock::table::Entry;
use crate::lock::ListenedUs;
use crate::lock::{
    Due, Event, Key, MonoUs, NoPermits, Notice, Notices, Outcome, Refusal, WaiterId, When,
};

/// The core's tokens by the model's.
#[derive(Clone, Default)]
pub struct Tokens {
    known: BTreeMap<Token, i64>,
    /// The greatest before this step.
    last: i64,
}

impl Tokens {
    /// One of these: which of them is left open.
    fn check_one(&mut self, tokens: &[Token], got: i64) {
        let known = |token: &&Token| self.known.get(token) == Some(&got);
        let new = |token: &&Token| !self.known.contains_key(token);
        let token = tokens.iter().find(known).or(tokens.iter().find(new));
        self.check(*token.unwrap_or(&tokens[0]), got);
    }

    fn check(&mut self, token: Token, got: i64) {
        let last = self.last;
        let known = self.known.entry(token).or_insert_with(|| {
            assert!(got > last, "the token {got} is not above {last}");
            got
        });
        assert_eq!(got, *known, "the token");
    }

    /// The core's, if it was ever told.
    pub fn known(&self, token: Token) -> Option<i64> {
        self.known.get(&token).copied()
    }

    fn step(&mut self) {
        self.last = self.known.values().copied().max().unwrap_or(0);
        let values: BTreeSet<i64> = self.known.values().copied().collect();
        assert_eq!(values.len(), self.known.len(), "a token was given twice");
    }
}

pub fn compare(world: &mut World, told: &Notices) {
    let core = &world.shell.core;
    let is_now = |due: &Due| due.next(core) == Some(When::Now);
    assert_eq!(Due::any_now(core), Due::ORDER.iter().any(is_now));
    let mut tokens = std::mem::take(&mut world.tokens);
    same_answers(world, &mut tokens, told);
    same_losses(world, told);
    same_hints(world, told);
    same_reply(world, &mut tokens);
    same_events(world, told);
    same_keys(world);
    same_locks_are_known(world);
    same_tokens(world, &mut tokens);
    same_addresses(world);
    same_queues(world);
    same_silence(world);
    all_is_scheduled(world);
    world.model.hearing.fell_silent.clear();
    tokens.step();
    world.tokens = tokens;
}

fn why(refusal: &Refusal) -> Why {
    match refusal {
        Refusal::Migrating { .. } => panic!("there are no slots here"),
        Refusal::NotALock { .. } | Refusal::LeaseKeyTaken { .. } => Why::WrongType,
        Refusal::NotHeld { .. } => Why::NotHeld,
        Refusal::ManyHolds { .. } => Why::Held,
        Refusal::Superseded => Why::Superseded,
        Refusal::NoLongerMaster => Why::SentAway,
        Refusal::TagInUse { .. } => Why::TagInUse,
        Refusal::OtherMode { .. } => Why::WrongMode,
        Refusal::Permits { why, .. } => match why {
            NoPermits::OtherLimit(_) | NoPermits::AboveLimit(_) => Why::WrongLimit,
            NoPermits::OtherShare { .. } => Why::Held,
            NoPermits::TooFew { .. } | NoPermits::Free => Why::NotHeld,
            NoPermits::OtherKind => Why::WrongMode,
        },
        Refusal::Deadlock { cycle } => {
            assert!(!cycle.is_empty());
            let next = cycle.iter().cycle().skip(1);
            let closed = cycle.iter().zip(next).all(|(a, b)| a.for_ == b.waits);
            assert!(closed, "no cycle: {cycle:?}");
            Why::Deadlock
        }
        other => panic!("refused for no reason that there is: {other:?}"),
    }
}

fn same_reply(world: &World, tokens: &mut Tokens) {
    match &world.replies {
        None
        | Some(
            (Got::Null, Reply::Null) | (Got::Waits, Reply::Waits(_)) | (Got::Done, Reply::Done),
        ) => {}
        Some((Got::Token(got), Reply::Token(token))) => tokens.check_one(token, got.0),
        Some((Got::Count(got), Reply::Count(count))) if got == count => {}
        Some((Got::Forced(got), Reply::Forced(was))) if got == was => {}
        Some((Got::Refused(got), Reply::Refused(reasons))) if reasons.contains(&why(got)) => {}
        Some((got, expected)) => panic!("the reply is {got:?}, not {expected:?}"),
    }
}

fn same_answers(world: &mut World, tokens: &mut Tokens, told: &Notices) {
    let mut got = BTreeMap::new();
    for notice in told {
        if let Notice::Answer {
            waiter,
            to,
            outcome,
            ..
        } = notice
        {
            assert!(got.insert(*waiter, outcome).is_none(), "answered twice");
            let id = world.ids.iter().position(|id| id == waiter);
            let expected = world.told_at[id.unwrap()].map(|to| world.shell.address(to));
            assert_eq!(*to, expected, "where {waiter:?} is told of {outcome:?}");
        }
    }
    let expected = std::mem::take(&mut world.model.answers);
    let show = format!("the answers are {got:?}, not {expected:?}");
    assert_eq!(got.len(), expected.len(), "{show}");
    for (id, answer) in expected {
        match (got.get(&world.ids[id]), answer) {
            (Some(Outcome::Granted(got)), Answer::Granted(token)) => {
                tokens.check_one(&token, got.0)
            }
            (Some(Outcome::TimedOut), Answer::TimedOut) => {}
            // In one tick both may come true.
            (Some(Outcome::Refused(Refusal::Deadlock { .. })), Answer::TimedOut) => {}
            (Some(Outcome::Refused(got)), Answer::Refused(reason)) if why(got) == reason => {}
            _ => panic!("{show}"),
        }
    }
}

fn same_events(world: &mut World, told: &Notices) {
    let mut got: BTreeMap<(Key, String), usize> = BTreeMap::new();
    for notice in told {
        if let Notice::Event { key, event } = notice {
            *got.entry((key.clone(), format!("{event:?}"))).or_default() += 1;
        }
    }
    let mut bounds: BTreeMap<(Key, String), (usize, usize)> = BTreeMap::new();
    for (place, event, sure) in std::mem::take(&mut world.model.events) {
        let bound = bounds.entry((at(place), name(event))).or_default();
        bound.0 += usize::from(sure);
        bound.1 += 1;
    }
    for (place, left) in &world.model.left {
        let what = (at(*place), name(Event::Expired));
        bounds.entry(what).or_default().1 += left;
    }
    if !world.shell.core.rules.emits_events {
        assert!(got.is_empty(), "nobody gets events: {got:?}");
        return;
    }
    let show = format!("the events are {got:?}, not {bounds:?}");
    for (what, (least, most)) in &bounds {
        let count = got.remove(what).unwrap_or(0);
        assert!((*least..=*most).contains(&count), "{what:?}: {show}");
    }
    // What was deleted unheard is taken to have run out, once it would have.
    let unheard =
        |event: &str| !world.shell.core.rules.observes_all && event == name(Event::Expired);
    got.retain(|(_, event), _| !unheard(event));
    assert!(got.is_empty(), "{show}");
}

fn name(event: Event) -> String {
    format!("{event:?}")
}

fn same_keys(world: &mut World) {
    for place in world.places.clone() {
        let key = at(place);
        let (value, ends) = match live(world, &key) {
            Some((value, ends)) => (value, ends),
            None => {
                let kind = world.model.kind(place);
                assert_eq!(kind, None, "{place:?} is gone");
                continue;
            }
        };
        match (world.model.kind(place), value) {
            (Some(Kind::Text), Value::Text) => {}
            (Some(Kind::Text), Value::Hash(_)) => is_untouched(world, place),
            (Some(Kind::Permits), Value::Hash(_)) => same_permits(world, place),
            (Some(Kind::Plain | Kind::Shared) | None, Value::Hash(_)) => same_lock(world, place),
            (expected, got) => panic!("{place:?} is {got:?}, not {expected:?}"),
        }
        if world.model.kind(place).is_some() {
            same_ttl(world, place, ends);
        }
    }
    same_leases(world);
}

pub fn live<'a>(world: &'a World, key: &Key) -> Option<(&'a Value, i64)> {
    let (value, ends) = world.shell.ks.keys.get(key)?;
    let ends = ends.map_or(NEVER, |at| at.0);
    (ends >= world.model.now_ms()).then_some((value, ends))
}

/// A hash that is no lock for want of a TTL is as somebody has left it.
fn is_untouched(world: &World, place: Place) {
    let Some((_, holds)) = world.model.aside.get(&place) else {
        panic!("{place:?} is a hash, not a text");
    };
    for hold in holds {
        let same = |h: &&Hold| (h.owner, h.mode) == (hold.owner, hold.mode);
        let count = holds.iter().filter(same).count();
        let got = world.shell.count(place, hold.owner, hold.mode);
        assert_eq!(got, count, "{hold:?}");
    }
}

/// What is known for a lock, and stays one without a TTL. Left open: rlock may have seen
/// one that no request was about.
fn same_locks_are_known(world: &mut World) {
    let places: Vec<Place> = world.model.keys.keys().copied().collect();
    for place in places {
        // Whoever has permits there is read bit by bit.
        if world.shell.core.pools.progress(&at(place)).is_some() {
            continue;
        }
        let entry = world.shell.core.locks.get(&at(place));
        let is_known = entry.is_some_and(Entry::is_held);
        let slot = world.model.keys.get_mut(&place).unwrap();
        if slot.kind == Kind::Text || slot.ends == NEVER || slot.known {
            let expected = slot.kind != Kind::Text;
            assert_eq!(is_known, expected, "whether {place:?} is known for a lock");
        }
        slot.known |= is_known;
    }
}

/// The same holds; but a reader whose leases are gone may have left its field.
fn same_lock(world: &World, place: Place) {
    let (model, shell) = (&world.model, &world.shell);
    let mut fields = shell.fields(place).unwrap().clone();
    let mode = fields.remove(&b"mode"[..]);
    let mut writer = false;
    for hold in model.holds_at(place) {
        let count = model.count(place, hold.owner, hold.mode);
        let got = shell.count(place, hold.owner, hold.mode);
        assert_eq!(got, count, "holds of {} on {place:?}", hold.owner);
        writer |= hold.mode == Mode::Write;
        fields
            .remove(hold.owner.as_bytes())
            .or_else(|| fields.remove(format!("{}:write", hold.owner).as_bytes()));
    }
    let own = |owner: &Owner| model.count(place, owner, Mode::Write) > 0;
    for owner in model.owners_at(place).into_iter().filter(own) {
        fields.remove(format!("{owner}:write").as_bytes());
    }
    for left in fields.keys() {
        let owner = World::is_owner(left);
        let owner = owner.unwrap_or_else(|| panic!("{place:?} has {left:?}"));
        let count = shell.count(place, owner, Mode::Read);
        let squatted = |i| model.squats.contains(&(place, owner, i));
        let there = |i| !squatted(i) && live(world, &lease_key(place, owner, i)).is_some();
        assert!(
            mode.is_some() && !(1..=count).any(there),
            "{owner} holds {place:?}"
        );
    }
    let word = match (model.kind(place), writer) {
        (Some(Kind::Plain), _) => None,
        (Some(Kind::Shared), true) => Some(&b"write"[..]),
        (Some(Kind::Shared), false) => Some(&b"read"[..]),
        _ => return,
    };
    assert_eq!(mode.as_deref(), word, "the mode of {place:?}");
}

/// The token of each hold under way, and the newest connection that it is watched
/// for.
fn same_tokens(world: &mut World, tokens: &mut Tokens) {
    let (model, shell) = (&mut world.model, &world.shell);
    for hold in &model.holds {
        let (place, owner) = (hold.place, hold.owner);
        let (key, mode) = (at(place), mode(hold.mode));
        let got = shell.core.hold_of(shell.now, &key, owner.as_bytes(), mode);
        match (got.token, model.tokens.get(&(place, owner))) {
            (None, None) => {}
            // It may have gone and come again unheard: then no token fits it, and whoever
            // was granted the one before has nothing to lose.
            (None, Some(_)) if !shell.core.rules.observes_all => {
                model.tokens.remove(&(place, owner));
                model.given.remove(&(place, owner, hold.mode));
                for grant in &mut model.grants {
                    grant.holds.retain(|id| *id != hold.id);
                }
            }
            (Some(got), Some(token)) => tokens.check(*token, got.0),
            (got, expected) => panic!("{owner} on {place:?} has {got:?}, not {expected:?}"),
        }
        let same = |h: &&Hold| (h.place, h.owner, h.mode) == (place, owner, hold.mode);
        let mut newest = model.holds.iter().rev().filter(same);
        let watched = newest.find(|hold| hold.watch.is_some());
        let client = watched.and_then(|hold| hold.client);
        assert_eq!(got.watchdog, client, "who watches for {owner} on {place:?}");
    }
}

fn same_queues(world: &World) {
    let (model, shell) = (&world.model, &world.shell);
    let order = |place: &Place| shell.core.waiters_of(shell.now, &at(*place), 100);
    let orders = world.places.iter().map(order);
    let show = || format!("{:?}, not {:?}", orders.collect::<Vec<_>>(), model.queue);
    assert!(world.same_order(&world.places), "the queues are {}", show());
    let ids: BTreeSet<WaiterId> = model.queue.iter().map(|w| world.ids[w.id]).collect();
    assert_eq!(
        shell
            .core
            .queues
            .iter()
            .map(|(id, _)| id)
            .collect::<BTreeSet<_>>(),
        ids
    );
    let open: BTreeSet<WaiterId> = model.grants.iter().map(|g| world.ids[g.waiter]).collect();
    let grants = shell.core.in_flight.grants.keys();
    assert_eq!(grants.copied().collect::<BTreeSet<_>>(), open);
}

/// Each that has said that it is alive may be silent for as long.
fn same_silence(world: &World) {
    let (model, heartbeats) = (&world.model, &world.shell.core.heartbeats);
    let got = model
        .hearing
        .beats
        .keys()
        .map(|client| heartbeats.until(*client));
    let expected = model
        .hearing
        .beats
        .values()
        .map(|beat| Some(ListenedUs(beat.until)));
    assert!(
        got.eq(expected),
        "{heartbeats:?}, not {:?}",
        model.hearing.beats
    );
    assert_eq!(heartbeats.listened(), ListenedUs(model.hearing.listened));
}

/// The timer is set for the next that is due. A watched lease is renewed every
/// third of it.
fn all_is_scheduled(world: &World) {
    let (model, core) = (&world.model, &world.shell.core);
    let first = model.queue.iter().filter_map(|waiter| waiter.until).min();
    assert_eq!(core.next_timeout(), first.map(MonoUs), "the next time-out");
    core.check();
    for hold in &model.holds {
        let ends = model.ends(hold.place, hold.owner);
        let ends = ends.min(model.keys[&hold.place].ends);
        let known = model.tokens.contains_key(&(hold.place, hold.owner));
        if known && ends != NEVER {
            let next = core.next_expiry();
            assert!(
                next.is_some_and(|at| at.0 <= ends + 1),
                "{hold:?}: {next:?}"
            );
        }
        let slot = model.keys[&hold.place];
        let watch = model.watched(hold.place, hold.owner);
        if let Some(watch) = watch.filter(|_| model.watchdog_max == 0 && !slot.by_hand) {
            let next = core.watchdogs.next_renewal();
            let due = ends - watch.lease * 2 / 3 + 1;
            assert!(next.is_some_and(|at| at.0 <= due), "{hold:?}: {next:?}");
            assert!(due >= model.now_ms(), "{hold:?} was not renewed");
        }
    }
}
