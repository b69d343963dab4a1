//! A search over owners, along who waits for whom.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Bound;

use crate::lock::queue::{Rank, Waiter};
use crate::lock::table::{Hold, Party};
use crate::lock::{Core, Key, Lease, Link, Mode, Now, Owner, WaiterId, WallMs};

/// What became of a search.
pub enum Found {
    Way(Vec<Link>),
    None,
    /// It was to come to so many owners and no more.
    TooFar,
}

impl Found {
    pub fn is_way(&self) -> bool {
        matches!(self, Self::Way(_))
    }
}

/// A search over owners, breadth first, for the shortest way to one of them.
pub struct Search<'a> {
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
    pub fn new(core: &'a Core, goal: &'a Owner, most: usize, now: Now) -> Self {
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
    pub fn run(&mut self, from: &Owner, only: Option<WaiterId>) -> Found {
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
