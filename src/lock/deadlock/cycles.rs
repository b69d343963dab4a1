//! The cycles that an owner or a request is part of, as far as is known.

use super::permits::hoarded;
use super::search::{Search, TooFar};
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use crate::lock::ask::Want;
use crate::lock::queue::Rank;
use crate::lock::{Core, Key, Link, Mode, Now, Owner, WaiterId};

/// A search that comes to more owners than these is put off until it is known that
/// somebody waits for the one who asks.
const FEW_OWNERS: usize = 64;

/// How many keys and waiters are looked at to find out whether somebody does.
const FEW_LOOKS: usize = 4096;

/// Why a request that has come to stand in its queues cannot wait: a cycle
/// that it closes. Those that its owner's other requests could close have been
/// looked for before.
pub fn closes_a_cycle(core: &Core, id: WaiterId, now: Now) -> Option<Vec<Link>> {
    let waiter = core.queues.get(id)?;
    // Only at the end of a queue has it nobody behind it.
    let last = |key: &Key| {
        let last = core.queues.line(key).queue.last();
        last.is_some_and(|(rank, _)| *rank == waiter.rank)
    };
    let only = waiter.keys.iter().all(last).then_some(id);
    let hoards = || {
        let mut keys = waiter.keys.iter().filter_map(|key| hoarded(core, key));
        keys.find_map(|(newest, cycle)| (newest == id).then_some(cycle))
    };
    cycle(core, &waiter.want.owner, only, now).or_else(hoards)
}

pub fn is_in_cycle(core: &Core, owner: &Owner, now: Now) -> bool {
    core.queues.owner(owner).is_some() && cycle(core, owner, None, now).is_some()
}

/// A cycle that a request is part of; it begins there.
pub fn cycle_through(core: &Core, id: WaiterId, now: Now) -> Option<Vec<Link>> {
    cycle(core, &core.queues.get(id)?.want.owner, Some(id), now)
}

/// A cycle that begins with an owner; `only`: with this request of its.
fn cycle(core: &Core, owner: &Owner, only: Option<WaiterId>, now: Now) -> Option<Vec<Link>> {
    if !core.rules.detect_deadlocks {
        return None;
    }
    let search = |most| Search::new(core, owner, most, now).run(owner, only);
    match search(FEW_OWNERS) {
        Ok(cycle) => cycle,
        Err(TooFar) if waits_for_nobody_back(core, owner) => None,
        Err(TooFar) => search(usize::MAX).unwrap_or(None),
    }
}

/// Another reader waits to write: neither will ever leave the other alone.
pub fn other_upgrade(core: &Core, id: WaiterId) -> Option<Vec<Link>> {
    let waiter = core.queues.get(id)?;
    let (key, me) = (waiter.keys.first()?, &waiter.want.owner);
    let entry = core.locks.get(key)?;
    let shared = entry.shared()?;
    // Upgrades stand before all others; one whose lease is over keeps its place.
    let mut upgrades = core.queues.waiting(key).take_while(|w| w.rank.is_front());
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
/// modes, and gives up when it has come far: a cycle is possible then.
fn waits_for_nobody_back(core: &Core, owner: &Owner) -> bool {
    let mut left = FEW_LOOKS;
    let mut seen = HashSet::from([owner]);
    let mut todo = vec![owner];
    while let Some(waited_for) = todo.pop() {
        let mut queues = Vec::new();
        for key in core.queues.keys() {
            left = left.saturating_sub(1);
            if core.locks.hold(key, waited_for).is_some() {
                queues.push(
                    core.queues
                        .line(key)
                        .queue
                        .range((Bound::Unbounded, Bound::Unbounded)),
                );
            }
            if left == 0 {
                return false;
            }
        }
        for waiter in core.queues.of_owner(waited_for) {
            let behind = (Bound::Excluded(&waiter.rank), Bound::Unbounded);
            let lines = waiter.keys.iter().map(|key| core.queues.line(key));
            queues.extend(lines.map(|line| line.queue.range(behind)));
        }
        for (_, id) in queues.into_iter().flatten() {
            left = left.saturating_sub(1);
            let Some(other) = core.queues.get(id).map(|waiter| &waiter.want.owner) else {
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

pub fn foremost_that_waits_for(core: &Core, id: WaiterId, now: Now) -> Option<Rank> {
    let waiter = core.queues.get(id)?;
    let lines = waiter.keys.iter().map(|key| core.queues.line(key));
    let ahead = (Bound::Unbounded, Bound::Excluded(&waiter.rank));
    let all: BTreeMap<&Rank, WaiterId> = lines.flat_map(|line| line.queue.range(ahead)).collect();
    let goal = &waiter.want.owner;
    let mut search = Search::new(core, goal, usize::MAX, now);
    all.into_iter().find_map(|(rank, other)| {
        let owner = &core.queues.get(other)?.want.owner;
        let waits = owner != goal && matches!(search.run(owner, None), Ok(Some(_)));
        waits.then(|| rank.clone())
    })
}

/// Whether it is the request of a reader that wants to write, while others read.
pub fn upgrades(core: &Core, keys: &[Key], want: &Want) -> bool {
    let [key] = keys else {
        return false;
    };
    let party = core.locks.party(key, &want.owner);
    want.mode == Mode::Write && party.is_some_and(|party| party.reads)
}
