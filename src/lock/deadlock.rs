//! Who waits for whom, and whether that goes round in a circle.
//!
//! The unit is the owner, over all its connections. One waits for another when a
//! request of the one conflicts with a live hold of the other (a hard edge), or
//! stands behind a conflicting request of the other in a queue (a soft edge); the
//! terms are those of PostgreSQL's lock manager (src/backend/storage/lmgr/README).
//!
//! Most who stand in a queue wait in no other place. Such a one waits for nobody
//! for whom the one behind it does not wait too, so the search steps over it; only
//! a writer that stands before a reader is looked at, for it waits for readers.

use super::{judge, waiting};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Bound;

use super::queue::{Rank, Waiter};
use super::table::{Hold, Party};
use super::{Core, Decision, Key, Lease, Link, Mode, Now, Owner, WaiterId, WallMs};

/// A search that comes to more owners than these is put off until it is known that
/// somebody waits for the one who asks.
const FEW_OWNERS: usize = 64;

/// How many keys and waiters are looked at to find out whether somebody does.
const FEW_LOOKS: usize = 4096;

impl Core {
    /// Why a request that has come to stand in its queues cannot wait: a circle
    /// that it closes. Those that its owner's other requests could close have been
    /// looked for before.
    pub(super) fn closes_a_circle(&self, id: WaiterId, now: Now) -> Option<Vec<Link>> {
        let waiter = self.queues.get(id)?;
        // Only at the end of a queue has it nobody behind it.
        let last = |key: &Key| {
            let last = self.queues.line(key).queue().last_key_value();
            last.is_some_and(|(rank, _)| *rank == waiter.rank)
        };
        let only = waiter.keys.iter().all(last).then_some(id);
        self.circle(&waiter.want.owner, only, now)
    }

    pub(super) fn is_in_circle(&self, owner: &Owner, now: Now) -> bool {
        self.queues.owner(owner).is_some() && self.circle(owner, None, now).is_some()
    }

    /// A circle that a request is part of; it begins there.
    pub(super) fn circle_through(&self, id: WaiterId, now: Now) -> Option<Vec<Link>> {
        self.circle(&self.queues.get(id)?.want.owner, Some(id), now)
    }

    /// A circle that begins with an owner; `only`: with this request of its.
    fn circle(&self, owner: &Owner, only: Option<WaiterId>, now: Now) -> Option<Vec<Link>> {
        if !self.rules.detect_deadlocks {
            return None;
        }
        let search = |most| Search::new(self, owner, most, now).run(owner, only);
        match search(FEW_OWNERS) {
            Found::Way(circle) => Some(circle),
            Found::None => None,
            Found::TooFar if self.waits_for_nobody_back(owner) => None,
            Found::TooFar => match search(usize::MAX) {
                Found::Way(circle) => Some(circle),
                Found::None | Found::TooFar => None,
            },
        }
    }

    /// Another reader waits to write: neither will ever leave the other alone.
    pub(super) fn other_upgrade(&self, id: WaiterId) -> Option<Vec<Link>> {
        let waiter = self.queues.get(id)?;
        let (key, me) = (waiter.keys.first()?, &waiter.want.owner);
        let entry = self.locks.get(key)?;
        let shared = entry.shared()?;
        // Upgrades stand before all others; one whose lease is over keeps its place.
        let mut upgrades = self.queues.waiting(key).take_while(|w| w.rank.is_front());
        let reads = |owner: &Owner| shared.party(owner).is_some_and(|party| party.reads);
        let other = upgrades.find(|w| w.want.owner != *me && reads(&w.want.owner))?;
        let other = other.want.owner.clone();
        let link = |waits: &Owner, for_: &Owner| Link {
            waits: waits.clone(),
            on: key.clone(),
            for_: for_.clone(),
        };
        Some(vec![link(me, &other), link(&other, me)])
    }

    /// The search from the other end: whether it is certain that none of those who
    /// wait for the owner, directly or not, is waited for by it. It looks at no
    /// modes, and gives up when it has come far: a circle is possible then.
    fn waits_for_nobody_back(&self, owner: &Owner) -> bool {
        let mut left = FEW_LOOKS;
        let mut seen = HashSet::from([owner]);
        let mut todo = vec![owner];
        while let Some(waited_for) = todo.pop() {
            let mut queues = Vec::new();
            for key in self.queues.keys() {
                left = left.saturating_sub(1);
                let entry = self.locks.get(key).filter(|e| e.hold(waited_for).is_some());
                queues.extend(entry.map(|_| self.queues.line(key).queue().range::<Rank, _>(..)));
                if left == 0 {
                    return false;
                }
            }
            for waiter in self.queues.of_owner(waited_for) {
                let behind = (Bound::Excluded(&waiter.rank), Bound::Unbounded);
                let lines = waiter.keys.iter().map(|key| self.queues.line(key));
                queues.extend(lines.map(|line| line.queue().range(behind)));
            }
            for (_, id) in queues.into_iter().flatten() {
                left = left.saturating_sub(1);
                let Some(other) = self.queues.get(*id).map(|waiter| &waiter.want.owner) else {
                    continue;
                };
                if left == 0 || (other == owner && waited_for != owner) {
                    return false;
                }
                if seen.insert(other) {
                    todo.push(other);
                }
            }
        }
        true
    }

    fn foremost_that_waits_for(&self, id: WaiterId, now: Now) -> Option<Rank> {
        let waiter = self.queues.get(id)?;
        let lines = waiter.keys.iter().map(|key| self.queues.line(key));
        let ahead = lines.flat_map(|line| line.queue().range(..&waiter.rank));
        let mut all: Vec<(Rank, WaiterId)> = ahead.map(|(rank, id)| (rank.clone(), *id)).collect();
        all.sort();
        all.dedup();
        let goal = &waiter.want.owner;
        let mut search = Search::new(self, goal, usize::MAX, now);
        all.into_iter().find_map(|(rank, other)| {
            let owner = &self.queues.get(other)?.want.owner;
            let waits = owner != goal && search.run(owner, None).is_way();
            waits.then_some(rank)
        })
    }
}

/// Seeks a way out: the request goes before the foremost waiter that waits for
/// its owner, and has the lock if it is free for it there. The circle that is
/// left, if one is.
pub fn let_past(d: &mut Decision<'_>, id: WaiterId, circle: Vec<Link>) -> Option<Vec<Link>> {
    let now = d.now;
    let Some(rank) = d.core.foremost_that_waits_for(id, now) else {
        return Some(circle);
    };
    d.core.queues.rerank(id, Rank::just_before(&rank, id));
    if waiting::has_its_turn(d, id) {
        return None;
    }
    judge::proven(d, |core| core.closes_a_circle(id, now))
}

/// As [`Core::let_past`], for a request that waits already. If that is no way out it
/// stays where it was.
pub fn finds_a_way(d: &mut Decision<'_>, id: WaiterId) -> bool {
    let Some(rank) = d.core.queues.get(id).map(|waiter| waiter.rank.clone()) else {
        return false;
    };
    if let_past(d, id, Vec::new()).is_none() {
        return true;
    }
    d.core.queues.rerank(id, rank);
    false
}

/// What became of a search.
enum Found {
    Way(Vec<Link>),
    None,
    /// It was to come to so many owners and no more.
    TooFar,
}

impl Found {
    fn is_way(&self) -> bool {
        matches!(self, Self::Way(_))
    }
}

/// A search over owners, breadth first, for the shortest way to one of them.
struct Search<'a> {
    core: &'a Core,
    goal: &'a Owner,
    /// How each owner was come to; not for those it began with.
    by: HashMap<Owner, Link>,
    seen: HashSet<Owner>,
    todo: VecDeque<Owner>,
    /// To how many more owners it may come.
    left: usize,
    /// A lease that ended before holds nobody up.
    now: WallMs,
    /// How far each queue was read.
    read: HashMap<Key, Rank>,
}

impl<'a> Search<'a> {
    fn new(core: &'a Core, goal: &'a Owner, most: usize, now: Now) -> Self {
        Self {
            core,
            goal,
            by: HashMap::new(),
            seen: HashSet::new(),
            todo: VecDeque::new(),
            left: most,
            now: now.wall_ms(),
            read: HashMap::new(),
        }
    }

    /// The way from an owner to the goal. A search that found none can go on from
    /// another owner; what it has seen leads nowhere. `only`: it begins with this
    /// request of the owner's.
    fn run(&mut self, from: &Owner, only: Option<WaiterId>) -> Found {
        if self.seen.insert(from.clone()) {
            self.todo.push_back(from.clone());
        }
        while let Some(owner) = self.todo.pop_front() {
            let begins = only.filter(|_| owner == *from);
            let all = begins.is_none().then(|| self.core.queues.ids_of(&owner));
            let ids = all.into_iter().flatten().chain(begins);
            for waiter in ids.filter_map(|id| self.core.queues.get(id)) {
                for key in &waiter.keys {
                    if let Some(last) = self.expand(waiter, key) {
                        return Found::Way(self.way(last));
                    }
                    if self.left == 0 {
                        return Found::TooFar;
                    }
                }
            }
        }
        Found::None
    }

    /// Follows the edges of one request on one key; the one that leads to the
    /// goal, if any does.
    fn expand(&mut self, waiter: &Waiter, key: &Key) -> Option<Link> {
        let entry = self.core.locks.get(key)?;
        let owner = &waiter.want.owner;
        // Held already, and not waited for.
        if entry.plain_of(owner).is_some() {
            return None;
        }
        let reads = waiter.want.mode == Mode::Read;
        let mut found = None;
        let mut to = |search: &mut Self, other: &Owner| {
            if other != owner && search.edge(owner, key, other) {
                found = Some(Link {
                    waits: owner.clone(),
                    on: key.clone(),
                    for_: other.clone(),
                });
            }
        };
        let now = self.now;
        let is_over = |end: Option<WallMs>| end.is_some_and(|at| at < now);
        // A watched one may have only stood still.
        let renewed = |hold: &Hold| hold.watch.as_ref().is_some_and(|w| w.next.is_some());
        let lives = |hold: &&Hold| renewed(hold) || !is_over(entry.deadline());
        if let Some(hold) = entry.plain().filter(lives) {
            to(self, &hold.owner);
        }
        let shared = entry.shared().filter(|shared| {
            let mut holds = shared.parties().map(|party| &party.hold);
            !is_over(shared.expires) || holds.any(renewed)
        });
        if let Some(shared) = shared {
            let lives = |party: &&Party| match party.lease {
                Lease::Until(at) => party.writes || renewed(&party.hold) || !is_over(Some(at)),
                Lease::Gone | Lease::Endless | Lease::Away => true,
            };
            match (reads, shared.writer()) {
                (true, Some(writer)) => to(self, writer),
                (true, None) => {}
                (false, _) => shared
                    .parties()
                    .filter(lives)
                    .for_each(|party| to(self, &party.hold.owner)),
            }
        }
        // Behind its owner's first request for the key nobody stands in its way: once
        // that is granted, the rest need not queue.
        let line = self.core.queues.line(key);
        let place = self
            .core
            .queues
            .first_of(owner, key)
            .unwrap_or(&waiter.rank);
        let of = |id: &WaiterId| self.core.queues.get(*id);
        if reads {
            // The nearest writer that really waits here stands for those ahead.
            let ahead = line.queue().range(..place).rev();
            let others = ahead.filter_map(|(_, id)| of(id));
            for other in others.filter(|w| w.want.mode != Mode::Read && w.want.owner != *owner) {
                let its = &other.want.owner;
                to(self, its);
                let first = self.core.queues.first_of(its, key) == Some(&other.rank);
                if first && entry.plain_of(its).is_none() {
                    break;
                }
            }
            return found;
        }
        let read = self.read.get(key).cloned();
        if read.as_ref().is_some_and(|read| read >= place) {
            return found;
        }
        let from = read.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let ahead = line
            .entangled()
            .range::<Rank, _>((from, Bound::Excluded(place)));
        for other in ahead.filter_map(|(_, id)| of(id)) {
            if self.left == 0 {
                return found;
            }
            to(self, &other.want.owner);
        }
        // It has left out its own, and to the goal all ways count.
        if owner != self.goal {
            self.read.insert(key.clone(), place.clone());
        }
        found
    }

    /// Comes from one owner to another; whether that is the goal.
    fn edge(&mut self, owner: &Owner, key: &Key, other: &Owner) -> bool {
        if other == self.goal {
            return true;
        }
        if self.core.queues.owner(other).is_some() && self.seen.insert(other.clone()) {
            let link = Link {
                waits: owner.clone(),
                on: key.clone(),
                for_: other.clone(),
            };
            self.left = self.left.saturating_sub(1);
            self.by.insert(other.clone(), link);
            self.todo.push_back(other.clone());
        }
        false
    }

    fn way(&self, last: Link) -> Vec<Link> {
        let mut way = vec![last];
        while let Some(link) = way.last().and_then(|link| self.by.get(&link.waits)) {
            way.push(link.clone());
        }
        way.reverse();
        way
    }
}
