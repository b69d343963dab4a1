//! What an owner's other requests come to when it gets a hold: they nest, are refused, or go
//! first. And who is refused for a cycle that a grant or a leaving has made.

use std::collections::BTreeSet;

use crate::lock::counters::Counters;
use crate::lock::deadlock::{self, TooFar};
use crate::lock::kind::permits::hoards::{forget_hoards, hoarded};
use crate::lock::queue::{Rank, Waiter};
use crate::lock::{grant, leaving};
use crate::lock::{Core, Decision, Key, NoPermits, Owner, Refusal, WaiterId};

/// Of an owner with more requests than these the inquiry finds out which is part of a cycle.
const MOST_JUDGED: usize = 64;

/// The first request for a key that its owner has come to hold nests there, is
/// refused, or waits on; if it stands before this place. Whether there was one.
pub fn nest_first(d: &mut Decision<'_>, before: Option<&Rank>) -> bool {
    let Some((rank, id, key)) = d.work.nesting.first().cloned() else {
        return false;
    };
    if before.is_some_and(|before| rank >= *before) {
        return false;
    }
    d.work.nesting.pop_first();
    match cannot_wait(d, &key, id) {
        Some(refusal) => grant::refuse(d, id, refusal),
        None => {
            grant::try_grant(d, id);
        }
    }
    true
}

/// Writers that wait and have come to read meanwhile go first, but for the second
/// of two. Whether one of them did, or was refused.
pub fn judge_upgrades(d: &mut Decision<'_>) -> bool {
    let mut all = BTreeSet::new();
    while let Some((key, owner)) = d.work.risen.pop_first() {
        for (rank, id) in d.core.queues.requests(&owner, &key) {
            let upgrades = |w: &Waiter| deadlock::upgrades(d.core, &w.keys, &w.want);
            if d.core.queues.get(id).is_some_and(upgrades) {
                all.insert((rank.clone(), id, key.clone(), owner.clone()));
            }
        }
    }
    while let Some((rank, id, key, _)) = all.pop_first() {
        let other = |core: &Core| Ok(deadlock::other_upgrade(core, id));
        if let Ok(Some(cycle)) = deadlock::proven(d, other) {
            Counters::up(&mut d.core.counters.deadlocks);
            grant::refuse(d, id, Refusal::Deadlock { cycle });
        } else if !rank.is_front() {
            let rank = leaving::front(d.core, &key, id);
            leaving::rerank(d.core, id, |waiter| waiter.rank = rank);
        } else {
            continue;
        }
        let rest = all.into_iter().map(|(_, _, key, owner)| (key, owner));
        d.work.risen.extend(rest);
        return true;
    }
    false
}

/// The first in the queue of a key waits for permits. If it can never have them, for those
/// who wait here hold them, the newest of their requests is refused. Before that those that
/// need not wait, for what their owners have come to hold, go. Whether there was one.
pub fn judge_permits(d: &mut Decision<'_>, key: &Key) -> bool {
    forget_hoards(d.core, key);
    if hoarded(d.core, key).is_some() && nest_first(d, None) {
        return true;
    }
    let find = |core: &Core| Ok(hoarded(core, key).map(|(_, cycle)| cycle));
    let Ok(Some(cycle)) = deadlock::proven(d, find) else {
        return false;
    };
    let Some((id, _)) = hoarded(d.core, key) else {
        return false;
    };
    Counters::up(&mut d.core.counters.deadlocks);
    grant::refuse(d, id, Refusal::Deadlock { cycle });
    true
}

/// All queues are as they will be. If some wait in a cycle, one of them finds a way
/// out of it; if nobody does, the oldest request in it is refused. Whether that was
/// so.
pub fn judge_cycles(d: &mut Decision<'_>) -> bool {
    let now = d.now;
    // Behind an exchange of databases they are when all keys were looked at.
    if d.work.suspects.is_empty() || d.core.heard.is_any_new() {
        return false;
    }
    let (owners, ids) = in_cycles(d);
    let mut first = None;
    for id in ids {
        let cycle = match deadlock::proven(d, |core| deadlock::cycle_through(core, id, now)) {
            Ok(Some(cycle)) => cycle,
            Ok(None) => continue,
            Err(TooFar) => {
                deadlock::suspect(d.core, id);
                continue;
            }
        };
        if deadlock::finds_a_way(d, id) {
            // There may be another one.
            d.work.suspects.extend(owners);
            return true;
        }
        first.get_or_insert((id, cycle));
    }
    let Some((id, cycle)) = first else {
        return false;
    };
    Counters::up(&mut d.core.counters.deadlocks);
    grant::refuse(d, id, Refusal::Deadlock { cycle });
    d.work.suspects.extend(owners);
    true
}

/// The suspects that are part of cycles, and their requests, as far as that is found soon. The
/// inquiry finds out the rest.
fn in_cycles(d: &mut Decision<'_>) -> (BTreeSet<Owner>, BTreeSet<WaiterId>) {
    let (core, now) = (&mut *d.core, d.now);
    let (mut owners, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for owner in std::mem::take(&mut d.work.suspects) {
        let is_in_cycle = deadlock::is_in_cycle(core, &owner, now);
        let has_many = core.queues.ids_of(&owner).nth(MOST_JUDGED).is_some();
        match is_in_cycle {
            Ok(false) => {}
            Ok(true) if !has_many => {
                ids.extend(core.queues.ids_of(&owner));
                owners.insert(owner);
            }
            Ok(true) | Err(TooFar) => core.inquiry.suspect(&owner),
        }
    }
    (owners, ids)
}

/// A waiter whose owner holds one of its keys may not wait on: the owner `*`, or a
/// mode that does not go with the one it has.
fn cannot_wait(d: &mut Decision<'_>, key: &Key, id: WaiterId) -> Option<Refusal> {
    let waiter = d.core.queues.get(id).cloned()?;
    if waiter.is_late(d.now) {
        return None;
    }
    match grant::plan(d, Some(id), std::slice::from_ref(key), &waiter.want) {
        Err(
            refusal @ (Refusal::Held { .. }
            | Refusal::Permits {
                why: NoPermits::OtherShare { .. },
                ..
            }
            | Refusal::OtherMode { .. }),
        ) => Some(refusal),
        _ => None,
    }
}
