//! What is promised of every lock, looked at without the model: from the keys
//! themselves, and from who asked for what in which order.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Address, Ask, Mode, Owner, Place};
use super::others::lease_key;
use super::shell::at;
use super::world::{Got, World};
use crate::lock::memory::Value;
use crate::lock::table::Entry;
use crate::lock::{self, Loss, MonoUs, Notice, Notices, Outcome, Reason, Refusal, WaiterId};

#[derive(Clone, Debug)]
struct Request {
    ask: Ask,
    /// It came as an upgrade, or was one for a while, and keeps its place ahead.
    upgrades: bool,
    /// The request whose place it has: its own, or an older one's.
    place_of: WaiterId,
}

#[derive(Clone, Default)]
pub struct Promises {
    /// All who wait, by their arrival.
    waiting: BTreeMap<WaiterId, Request>,
    /// Those with ONCE whose connection was closed, and until when they have their places.
    kept: Vec<(Request, MonoUs)>,
    seen: usize,
    /// Who held what before the step.
    held: BTreeMap<Place, Holders>,
    /// How many losses an address can be told of: of as many keys as it was granted.
    granted: BTreeMap<lock::Address, usize>,
}

/// Who holds a lock, and whether for writing (or plain).
type Holders = BTreeMap<Owner, BTreeSet<Mode>>;

impl Promises {
    /// This request was an upgrade when it came, or for a while since.
    pub fn came_ahead(&self, id: WaiterId) -> bool {
        self.waiting
            .get(&id)
            .is_some_and(|request| request.upgrades)
    }

    pub fn before(&mut self, world: &World) {
        self.held = holders_of_all(world);
    }

    pub fn after(&mut self, world: &World, told: &Notices) {
        self.arrived(world, told);
        self.each_loss_is_told_once(world, told);
        self.each_is_answered_once(world, told);
        let holders: BTreeMap<Place, Holders> = holders_of_all(world);
        for (place, holders) in &holders {
            excluded(*place, holders);
        }
        for (id, request) in &self.waiting {
            let stuck = could_go_on(world, &holders, (*id, request));
            assert!(!stuck, "{request:?} is stuck");
        }
    }

    fn arrived(&mut self, world: &World, told: &Notices) {
        let Some(ask) = &world.asked else {
            return;
        };
        let mut superseded = told.iter().filter_map(|notice| match notice {
            Notice::Answer {
                waiter,
                outcome: Outcome::Refused(Refusal::Superseded),
                ..
            } => self.waiting.get(waiter),
            _ => None,
        });
        // Nothing is said of a request that was sent again.
        let is_gone = |id: &WaiterId| world.shell.core.queues.get(*id).is_none();
        let words = ask.told_at().map(|to| to.words());
        let resent = |(id, request): &(&WaiterId, &Request)| {
            let same = (request.ask.owner, request.ask.mode) == (ask.owner, ask.mode);
            let told_at = request.ask.told_at().map(|to| to.words());
            ask.once && same && words.is_some() && words == told_at && is_gone(id)
        };
        let mut resent = self.waiting.iter().filter(resent);
        let resent = resent.next().map(|(_, request)| request.place_of);
        let place_of = superseded.next().map(|request| request.place_of).or(resent);
        let place_of = place_of.or_else(|| self.kept_place(world, ask));
        for id in &world.ids[self.seen..] {
            let request = Request {
                ask: ask.clone(),
                upgrades: self.held[&ask.keys[0]].contains_key(ask.owner),
                place_of: place_of.unwrap_or(*id),
            };
            self.waiting.insert(*id, request);
        }
        self.seen = world.ids.len();
    }

    /// The place of a request whose connection was closed, if this is the same again: it
    /// has it once, and has no need of it when it is granted at once.
    fn kept_place(&mut self, world: &World, ask: &Ask) -> Option<WaiterId> {
        let is_over = matches!(world.replies, Some((Got::Null | Got::Refused(_), _)));
        if !ask.once || is_over {
            return None;
        }
        let now = world.shell.now.mono;
        let same = |(request, _): &mut (Request, MonoUs)| request.ask.is_same(ask);
        let kept = self.kept.extract_if(.., same).last();
        let (request, _) = kept.filter(|(_, until)| *until > now)?;
        Some(request.place_of)
    }

    /// Those whose client went get no answer.
    fn each_that_left_is_forgotten(&mut self, world: &World) {
        let queues = &world.shell.core.queues;
        let gone = |id: &WaiterId, _: &mut Request| queues.get(*id).is_none();
        for (_, request) in self.waiting.extract_if(.., gone) {
            let closed = !world.seats.contains(&request.ask.client);
            let keeps = world.shell.core.rules.keep_place;
            // An upgrade has a place of its own.
            let is_upgrade = request.upgrades && request.ask.mode == Mode::Write;
            let keeps = keeps.filter(|_| closed && request.ask.once && !is_upgrade);
            if let Some(ms) = keeps {
                self.kept.push((request, world.shell.now.until(ms)));
            }
        }
    }

    /// Only what was granted can be lost, and after that.
    fn each_loss_is_told_once(&mut self, world: &World, told: &Notices) {
        if let (Some(ask), Some((Got::Token(_), _))) = (&world.asked, &world.replies) {
            self.grant(world, ask.notify, ask.keys.len());
        }
        self.grant(world, world.renamed, 1);
        for notice in told {
            if let Notice::Lost(loss) = notice {
                nobody_is_silent_too_soon(world, loss);
            }
            match notice {
                Notice::Answer {
                    waiter,
                    outcome: Outcome::Granted(_),
                    ..
                } => {
                    let request = &self.waiting[waiter];
                    self.grant(world, request.ask.notify, request.ask.keys.len());
                }
                Notice::Lost(Loss {
                    address: Some(address),
                    ..
                }) => {
                    let left = self.granted.get_mut(address);
                    let left = left.unwrap_or_else(|| panic!("{address:?} never had it"));
                    *left = left.checked_sub(1).expect("a loss is told twice");
                }
                _ => {}
            }
        }
        let sessions = &world.shell.core.sessions;
        self.granted.retain(|address, _| sessions.has(address));
    }

    fn grant(&mut self, world: &World, notify: Option<Address>, keys: usize) {
        if let Some(address) = notify {
            let address = world.shell.address(address);
            *self.granted.entry(address).or_default() += keys;
        }
    }

    fn each_is_answered_once(&mut self, world: &World, told: &Notices) {
        for notice in told {
            if let Notice::Answer {
                waiter, outcome, ..
            } = notice
            {
                let request = self.waiting.remove(waiter);
                let request = request.unwrap_or_else(|| panic!("{waiter:?} answered twice"));
                if matches!(outcome, Outcome::Granted(_)) {
                    let acquired = |place: &Place| {
                        let key = at(*place);
                        let event = lock::Event::Acquired;
                        told.contains(&Notice::Event { key, event })
                    };
                    self.nobody_is_overtaken(world, &request, acquired);
                    // Others of its owner's may nest in it, be it lost a moment later.
                    for place in &request.ask.keys {
                        let held = self.held.get_mut(place).unwrap();
                        let modes = held.entry(request.ask.owner).or_default();
                        modes.insert(request.ask.mode);
                    }
                }
            }
        }
        self.each_that_left_is_forgotten(world);
        let waiters = &world.shell.core.queues;
        for (id, request) in &mut self.waiting {
            request.upgrades |= waiters.get(*id).is_some_and(|w| w.rank.is_front());
        }
        assert_eq!(waiters.len(), self.waiting.len());
    }

    /// Nobody who came before waits still; but for nesting, upgrades and the way
    /// out of a deadlock.
    fn nobody_is_overtaken(
        &self,
        world: &World,
        request: &Request,
        acquired: impl Fn(&Place) -> bool,
    ) {
        let nests = |place: &Place| {
            let modes = [Mode::Read, Mode::Write];
            let count = modes.map(|mode| world.shell.count(*place, request.ask.owner, mode));
            let held = self.held[place].contains_key(request.ask.owner);
            // With ONCE it may have had it already, since this very step.
            if request.ask.mode == Mode::Permits {
                // Whoever has some waits behind others for more.
                return !acquired(place);
            }
            held || request.upgrades || count[0] + count[1] > 1 || !acquired(place)
        };
        if world.shell.core.rules.detect_deadlocks || request.ask.keys.iter().any(nests) {
            return;
        }
        let ahead = |other: &&Request| other.place_of < request.place_of;
        for other in self.waiting.values().filter(ahead) {
            let shares = other
                .ask
                .keys
                .iter()
                .any(|place| request.ask.keys.contains(place));
            let together = (other.ask.mode, request.ask.mode) == (Mode::Read, Mode::Read);
            let waits = world.shell.core.queues.len() >= self.waiting.len();
            let same = other.ask.owner == request.ask.owner;
            assert!(
                !shares || together || same || !waits,
                "{request:?} overtook {other:?}"
            );
        }
    }
}

/// By the clock, too, nobody is taken for silent before its time is over.
fn nobody_is_silent_too_soon(world: &World, loss: &Loss) {
    if loss.reason != Reason::Silent {
        return;
    }
    let until = loss.watcher.and_then(|client| world.heard.get(&client));
    let is_over = |until: &i64| *until <= world.shell.now.mono.0;
    assert!(until.is_none_or(is_over), "{loss:?} of one who was heard");
}

/// Whether a request is first in all its queues, and its keys are free for it.
fn could_go_on(
    world: &World,
    holders: &BTreeMap<Place, Holders>,
    (id, request): (WaiterId, &Request),
) -> bool {
    let reads = request.ask.mode == Mode::Read;
    request.ask.keys.iter().all(|place| {
        if !matches!(value(world, *place), None | Some(Value::Hash(_))) || is_data(world, *place) {
            return false;
        }
        let holders = &holders[place];
        let own = holders.contains_key(request.ask.owner);
        let mut others = holders
            .iter()
            .filter(|(owner, _)| **owner != request.ask.owner);
        let free = others.all(|(_, modes)| reads && modes.iter().all(|m| *m == Mode::Read));
        let permits = request.ask.mode == Mode::Permits;
        let fits = permits && world.fits(*place, &request.ask);
        let first = || {
            let queues = &world.shell.core.queues;
            let queue = queues.line(&at(*place)).queue.ids();
            let mut ahead = queue.take_while(|other| *other != id);
            let is_read = |id: WaiterId| queues.get(id).unwrap().want.mode == lock::Mode::Read;
            ahead.all(|other| reads && is_read(other))
        };
        match permits && !holders.is_empty() {
            true => fits && first(),
            false => free && (own || first()),
        }
    })
}

fn value(world: &World, place: Place) -> Option<&Value> {
    let (value, ends) = world.shell.ks.keys.get(&at(place))?;
    let live = ends.is_none_or(|at| at >= world.shell.ks.now_ms);
    live.then_some(value)
}

/// A hash without a TTL that the core does not know for a lock.
fn is_data(world: &World, place: Place) -> bool {
    let known = world.shell.core.locks.get(&at(place));
    let found = world.shell.ks.keys.get(&at(place));
    found.is_some_and(|(_, ends)| ends.is_none()) && !known.is_some_and(Entry::is_held)
}

fn holders_of_all(world: &World) -> BTreeMap<Place, Holders> {
    let holders = |place| (place, holders(world, place));
    world.places.iter().copied().map(holders).collect()
}

/// Read from the hash and the lease keys.
fn holders(world: &World, place: Place) -> Holders {
    let mut found = Holders::new();
    let Some(Value::Hash(fields)) = value(world, place) else {
        return found;
    };
    let shared = fields.contains_key(&b"mode"[..]);
    if let lock::Kind::Permits(_) = lock::kind::look(fields, &[], None).kind {
        for holder in lock::kind::holders(fields, None, usize::MAX) {
            let live = holder
                .lease
                .end()
                .is_some_and(|at| at >= world.shell.ks.now_ms);
            if let Some(owner) = World::is_owner(&holder.owner).filter(|_| live) {
                found.entry(owner).or_default().insert(Mode::Permits);
            }
        }
        return found;
    }
    for owner in super::ops::OWNERS {
        if shared && fields.contains_key(format!("{owner}:write").as_bytes()) {
            found.entry(owner).or_default().insert(Mode::Write);
        }
        if !fields.contains_key(owner.as_bytes()) {
            continue;
        }
        let there = |index| {
            let key = lease_key(place, owner, index);
            let ends = world.shell.ks.keys.get(&key).map(|(_, ends)| *ends);
            ends.is_some_and(|ends| ends.is_none_or(|at| at >= world.shell.ks.now_ms))
        };
        if !shared {
            found.entry(owner).or_default().insert(Mode::Plain);
        } else if (1..=world.shell.count(place, owner, Mode::Read)).any(there) {
            found.entry(owner).or_default().insert(Mode::Read);
        }
    }
    found
}

/// One owner, or none but readers.
fn excluded(place: Place, holders: &Holders) {
    let only_read = |modes: &BTreeSet<Mode>| modes.iter().all(|mode| *mode == Mode::Read);
    let excludes = holders.values().any(|modes| !only_read(modes));
    let is_permit = |mode: &Mode| *mode == Mode::Permits;
    let permits = holders.values().flatten().filter(|mode| is_permit(mode));
    let only_permits = holders.values().all(|modes| modes.iter().all(is_permit));
    assert!(permits.count() == 0 || only_permits, "{holders:?}");
    assert!(
        !excludes || only_permits || holders.len() == 1,
        "{holders:?} on {place:?}"
    );
}

impl World {
    /// Whether so many permits are left of a lock that is held by some.
    fn fits(&self, place: Place, ask: &Ask) -> bool {
        let Some(Value::Hash(fields)) = value(self, place) else {
            return false;
        };
        let lock::Kind::Permits(pool) = lock::kind::look(fields, &[], None).kind else {
            return false;
        };
        let wants = ask.share.count as i64;
        pool.asked == ask.share.limit as i64 && pool.available() >= wants
    }
}
