//! The cycles that an owner or a request is part of, as far as is known.

use super::search::{Found, Search};
use super::steps::TooFar;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use crate::lock::ask::Want;
use crate::lock::kind::permits::hoards::hoarded;
use crate::lock::queue::Rank;
use crate::lock::table::Entry;
use crate::lock::{Core, Key, Link, Mode, Now, Owner, WaiterId};

/// So many steps a search takes before it is asked whether anybody waits for the one who asks,
const FEW_STEPS: usize = 64;

/// and so many keys and waiters are looked at to find that out.
const FEW_LOOKS: usize = 256;

const ALL: (Bound<&Rank>, Bound<&Rank>) = (Bound::Unbounded, Bound::Unbounded);

/// So many steps a search takes on the spot, at most: enough for rings of twenty owners. What takes
/// more must not cost a multiple of what takes as many.
const STEPS: usize = 128;

/// Why a request that has come to stand in its queues cannot wait: a cycle
/// that it closes. Those that its owner's other requests could close have been
/// looked for before.
pub fn closes_a_cycle(core: &Core, id: WaiterId, now: Now) -> Found {
    let Some(waiter) = core.queues.get(id) else {
        return Ok(None);
    };
    if closes_none(core, &waiter.keys) {
        return Ok(None);
    }
    // Only at the end of a queue has it nobody behind it.
    let last = |key: &Key| {
        let last = core.queues.line(key).queue.last();
        last.is_some_and(|(rank, _)| *rank == waiter.rank)
    };
    let only = waiter.keys.iter().all(last).then_some(id);
    if let Some(cycle) = cycle(core, &waiter.want.owner, only, now)? {
        return Ok(Some(cycle));
    }
    let mut hoards = waiter.keys.iter().filter_map(|key| hoarded(core, key));
    Ok(hoards.find_map(|(newest, cycle)| (newest == id).then_some(cycle)))
}

/// As nearly always, for a request for one plain lock: its holder waits for nothing, nor do those
/// who stand in its queue wait for anything else.
fn closes_none(core: &Core, keys: &[Key]) -> bool {
    let [key] = keys else { return false };
    let entry = core.locks.get(key).filter(|entry| entry.shared().is_none());
    let holder = entry.and_then(Entry::plain);
    let waits = |owner: &Owner| core.queues.ids_of(owner).next().is_some();
    holder.is_some_and(|hold| !waits(&hold.owner)) && core.queues.line(key).is_plain()
}

pub fn is_in_cycle(core: &Core, owner: &Owner, now: Now) -> Result<bool, TooFar> {
    Ok(core.queues.owner(owner).is_some() && cycle(core, owner, None, now)?.is_some())
}

/// A cycle that a request is part of; it begins there.
pub fn cycle_through(core: &Core, id: WaiterId, now: Now) -> Found {
    let Some(waiter) = core.queues.get(id) else {
        return Ok(None);
    };
    cycle(core, &waiter.want.owner, Some(id), now)
}

/// A cycle that begins with an owner; `only`: with this request of its.
fn cycle(core: &Core, owner: &Owner, only: Option<WaiterId>, now: Now) -> Found {
    if !core.rules.detect_deadlocks {
        return Ok(None);
    }
    let search = |steps| Search::new(core, owner, steps, now).run(owner, only);
    match search(FEW_STEPS) {
        Err(TooFar) if waits_for_nobody_back(core, owner)? => Ok(None),
        Err(TooFar) => search(STEPS),
        found => found,
    }
}

/// That takes longer to find out: the inquiry does it.
pub fn suspect(core: &mut Core, id: WaiterId) {
    if let Some(waiter) = core.queues.get(id) {
        core.inquiry.suspect(&waiter.want.owner);
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
    let reads = |owner: &Owner| shared.hold(owner).is_some_and(|hold| hold.reads);
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
fn waits_for_nobody_back(core: &Core, owner: &Owner) -> Result<bool, TooFar> {
    let mut left = FEW_LOOKS;
    let mut look = || {
        left = left.saturating_sub(1);
        core.inquiry.steps.take().map(|()| left > 0)
    };
    let mut seen = HashSet::from([owner]);
    let mut todo = vec![owner];
    while let Some(waited_for) = todo.pop() {
        let mut queues = Vec::new();
        for key in core.queues.keys() {
            if !look()? {
                return Ok(false);
            }
            if core.locks.hold(key, waited_for).is_some() {
                queues.push(core.queues.line(key).queue.range(ALL));
            }
        }
        for waiter in core.queues.of_owner(waited_for) {
            let behind = (Bound::Excluded(&waiter.rank), Bound::Unbounded);
            for key in &waiter.keys {
                if !look()? {
                    return Ok(false);
                }
                queues.push(core.queues.line(key).queue.range(behind));
            }
        }
        for (_, id) in queues.into_iter().flatten() {
            let is_far = !look()?;
            let Some(other) = core.queues.get(id).map(|waiter| &waiter.want.owner) else {
                continue;
            };
            if is_far || (other == owner && waited_for != owner) {
                return Ok(false);
            }
            if seen.insert(other) {
                todo.push(other);
            }
        }
    }
    Ok(true)
}

/// The place of the foremost, in the queues of a request, of those who wait for its owner,
/// directly or not. `None` too if that takes long to find out.
pub fn foremost_that_waits_for(core: &Core, id: WaiterId, now: Now) -> Option<Rank> {
    let waiter = core.queues.get(id)?;
    let goal = &waiter.want.owner;
    let mut search = Search::new(core, goal, usize::MAX, now);
    let ahead = (Bound::Unbounded, Bound::Excluded(&waiter.rank));
    let lines = waiter.keys.iter().map(|key| core.queues.line(key));
    let mut lines: Vec<_> = lines.map(|line| line.queue.range(ahead)).collect();
    // The next of each queue.
    let next = |line: (usize, &mut _)| Iterator::next(line.1).map(|next| (next, line.0));
    let mut nearest: BTreeMap<(&Rank, WaiterId), usize> =
        lines.iter_mut().enumerate().filter_map(next).collect();
    while let Some(((rank, other), at)) = nearest.pop_first() {
        core.inquiry.steps.take().ok()?;
        if let Some(line) = lines.get_mut(at) {
            nearest.extend(next((at, line)));
        }
        let owner = &core.queues.get(other)?.want.owner;
        if owner != goal && search.run(owner, None).ok()?.is_some() {
            return Some(rank.clone());
        }
    }
    None
}

/// Whether it is the request of a reader that wants to write, while others read.
pub fn upgrades(core: &Core, keys: &[Key], want: &Want) -> bool {
    let [key] = keys else {
        return false;
    };
    let hold = core.locks.sharer(key, &want.owner);
    want.mode == Mode::Write && hold.is_some_and(|hold| hold.reads)
}
