//! A search over owners, along who waits for whom.

use std::collections::{HashMap, VecDeque};
use std::ops::Bound;

use crate::lock::queue::{Rank, Waiter};
use crate::lock::table::{Entry, Hold};
use crate::lock::{Core, Key, Link, Mode, Now, Owner, WaiterId, WallMs};

/// A search was to come to so many owners and no more.
pub struct TooFar;

/// One request on one key.
#[derive(Clone, Copy)]
struct At<'b> {
    waiter: &'b Waiter,
    key: &'b Key,
    /// Where it stands in the queue of the key: behind its owner's first request for the
    /// key nobody is in its way, for once that is granted the rest need not queue.
    place: &'b Rank,
}

/// A search over owners, breadth first, for the shortest way to one of them.
pub struct Search<'a> {
    core: &'a Core,
    goal: &'a Owner,
    /// How each owner but the goal was come to; `None`: it began there.
    by: HashMap<Owner, Option<Link>>,
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
            todo: VecDeque::new(),
            left: most,
            now: now.wall_ms(),
            read: HashMap::new(),
        }
    }

    /// The way from an owner to the goal, if there is one. A search that found none can
    /// go on from another owner; what it has seen leads nowhere. `only`: it begins with
    /// this request of the owner's.
    pub fn run(
        &mut self,
        from: &Owner,
        only: Option<WaiterId>,
    ) -> Result<Option<Vec<Link>>, TooFar> {
        // The search ends where it comes to the goal, and so never goes on from there.
        let is_new = from == self.goal || !self.by.contains_key(from);
        if is_new && from != self.goal {
            self.by.insert(from.clone(), None);
        }
        if is_new {
            if let Some(way) = self.go_on(from, only)? {
                return Ok(Some(way));
            }
        }
        while let Some(owner) = self.todo.pop_front() {
            if let Some(way) = self.go_on(&owner, None)? {
                return Ok(Some(way));
            }
        }
        Ok(None)
    }

    /// Follows the edges of an owner's requests, or of `only` this one; the way to the
    /// goal, if one of them leads there.
    fn go_on(
        &mut self,
        owner: &Owner,
        only: Option<WaiterId>,
    ) -> Result<Option<Vec<Link>>, TooFar> {
        let all = only.is_none().then(|| self.core.queues.ids_of(owner));
        let ids = all.into_iter().flatten().chain(only);
        for waiter in ids.filter_map(|id| self.core.queues.get(id)) {
            for key in &waiter.keys {
                if let Some(last) = self.expand(waiter, key) {
                    return Ok(Some(self.way(last)));
                }
                if self.left == 0 {
                    return Err(TooFar);
                }
            }
        }
        Ok(None)
    }

    /// Follows the edges of one request on one key; the one that leads to the
    /// goal, if any does.
    fn expand(&mut self, waiter: &Waiter, key: &Key) -> Option<Link> {
        let entry = self.core.locks.get(key)?;
        // Held already, and not waited for.
        let holder = self.plain(entry).map(|hold| &hold.owner);
        if holder == Some(&waiter.want.owner) {
            return None;
        }
        let twice = !self.core.queues.line(key).entangled.is_empty();
        let first = twice.then(|| self.core.queues.first_of(&waiter.want.owner, key));
        let place = first.flatten().unwrap_or(&waiter.rank);
        let at = At { waiter, key, place };
        let by_holders = self.expand_holders(at, entry);
        by_holders.or_else(|| match waiter.want.mode {
            Mode::Read | Mode::Permits => self.expand_ahead_of_one_of_several(at, entry),
            Mode::Exclusive | Mode::Write => self.expand_ahead(at),
        })
    }

    /// A hold that ends then holds anybody up. A watched one may have only stood still.
    fn lives(&self, hold: &Hold, end: Option<WallMs>) -> bool {
        let renewed = || hold.watch.as_ref().is_some_and(|w| w.next.is_some());
        end.is_none_or(|at| at >= self.now) || renewed()
    }

    /// The plain hold, if it is not over.
    fn plain<'e>(&self, entry: &'e Entry) -> Option<&'e Hold> {
        let lives = |hold: &&Hold| self.lives(hold, entry.deadline);
        entry.plain().filter(lives)
    }

    /// The edges to those who hold the lock.
    fn expand_holders(&mut self, at: At<'_>, entry: &Entry) -> Option<Link> {
        let plain = self.plain(entry);
        if let Some(link) = plain.and_then(|hold| self.edge(at, &hold.owner)) {
            return Some(link);
        }
        let shared = entry.shared().filter(|shared| {
            let mut holds = shared.parties().map(|party| &party.hold);
            holds.any(|hold| self.lives(hold, shared.expires))
        })?;
        match (at.waiter.want.mode, shared.pool) {
            (Mode::Read, None) => return self.edge(at, shared.writer()?),
            // Any of them that come back will do (`permits`).
            (Mode::Permits, Some(_)) => return None,
            _ => {}
        }
        let mut parties = shared.parties();
        parties.find_map(|party| {
            let lives = party.writes || self.lives(&party.hold, party.lease.end());
            lives.then(|| self.edge(at, &party.hold.owner)).flatten()
        })
    }

    /// The edges of a reader, or of one that wants permits, to those ahead that want something
    /// else: the nearest that wants all of the lock and really waits here stands for them.
    fn expand_ahead_of_one_of_several(&mut self, at: At<'_>, entry: &Entry) -> Option<Link> {
        let queues = &self.core.queues;
        let own_mode = at.waiter.want.mode;
        let line = queues.line(at.key);
        // As a rule, and then there can be very many.
        if line.is_all_of(own_mode) {
            return None;
        }
        let holder = self.plain(entry).map(|hold| &hold.owner);
        let ahead = (Bound::Unbounded, Bound::Excluded(at.place));
        let ahead = line.queue.range(ahead).rev();
        let others = ahead.filter_map(|(_, id)| queues.get(id));
        for other in others.filter(|w| w.want.mode != own_mode) {
            let its = &other.want.owner;
            if *its == at.waiter.want.owner {
                continue;
            }
            let link = self.edge(at, its);
            let wants_all = !other.want.mode.is_for_several();
            let first = wants_all && queues.first_of(its, at.key) == Some(&other.rank);
            if link.is_some() || (first && holder != Some(its)) {
                return link;
            }
        }
        None
    }

    /// The edges of any other to those ahead, as far as the queue was not read before.
    fn expand_ahead(&mut self, at: At<'_>) -> Option<Link> {
        let queues = &self.core.queues;
        let entangled = &queues.line(at.key).entangled;
        // As a rule.
        if entangled.is_empty() {
            return None;
        }
        let read = self.read.get(at.key).cloned();
        if read.as_ref().is_some_and(|read| read >= at.place) {
            return None;
        }
        let from = read.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let ahead = entangled.range((from, Bound::Excluded(at.place)));
        for other in ahead.filter_map(|(_, id)| queues.get(id)) {
            if self.left == 0 {
                return None;
            }
            let link = self.edge(at, &other.want.owner);
            if link.is_some() {
                return link;
            }
        }
        // It has left out its own, and to the goal all ways count.
        if at.waiter.want.owner != *self.goal {
            self.read.insert(at.key.clone(), at.place.clone());
        }
        None
    }

    /// Comes from the owner of a request to another; the link, if that is the goal.
    fn edge(&mut self, at: At<'_>, other: &Owner) -> Option<Link> {
        let owner = &at.waiter.want.owner;
        let link = || Link {
            waits: owner.clone(),
            on: at.key.clone(),
            for_: other.clone(),
        };
        if other == owner {
            return None;
        }
        if other == self.goal {
            return Some(link());
        }
        if self.core.queues.owner(other).is_some() && !self.by.contains_key(other) {
            self.left = self.left.saturating_sub(1);
            self.by.insert(other.clone(), Some(link()));
            self.todo.push_back(other.clone());
        }
        None
    }

    fn way(&self, last: Link) -> Vec<Link> {
        let mut way = vec![last];
        while let Some(link) = way
            .last()
            .and_then(|link| self.by.get(&link.waits)?.as_ref())
        {
            way.push(link.clone());
        }
        way.reverse();
        way
    }
}
