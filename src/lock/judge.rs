//! What an owner's other requests come to when it gets a hold: they nest, are
//! refused, or go first.

use super::{acquire, deadlock, reconcile, timeouts, waiting};
use std::collections::BTreeSet;

use super::acquire::{held, How};
use super::queue::{Rank, Waiter};
use super::stats::Counters;
use super::{Core, Decision, Key, Link, Refusal, WaiterId};

/// A circle is believed after so many looks at the most, whatever others do.
const MOST_LOOKS: u32 = 16;

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
        Some(refusal) => waiting::refuse(d, id, refusal),
        None => {
            waiting::turn(d, id);
        }
    }
    true
}

/// Writers that wait and have come to read meanwhile go first, but for the second
/// of two. Whether one of them did, or was refused.
pub fn judge_upgrades(d: &mut Decision<'_>) -> bool {
    let mut all = Vec::new();
    for (key, owner) in std::mem::take(&mut d.work.risen) {
        for (rank, id) in d.core.queues.requests(&owner, &key) {
            let upgrades = |w: &Waiter| d.core.upgrades(&w.keys, &w.want);
            if d.core.queues.get(id).is_some_and(upgrades) {
                all.push((rank, id, key.clone(), owner.clone()));
            }
        }
    }
    all.sort();
    let mut all = all.into_iter();
    while let Some((rank, id, key, _)) = all.next() {
        if let Some(circle) = proven(d, |core| core.other_upgrade(id)) {
            Counters::up(&mut d.core.counters.deadlocks);
            waiting::refuse(d, id, Refusal::Deadlock { circle });
        } else if !rank.is_front() {
            let rank = d.core.front(&key, id);
            d.core.queues.rerank(id, rank);
        } else {
            continue;
        }
        d.work
            .risen
            .extend(all.map(|(_, _, key, owner)| (key, owner)));
        return true;
    }
    false
}

/// All queues are as they will be. If some wait in a circle, one of them finds a way
/// out of it; if nobody does, the oldest request in it is refused. Whether that was
/// so.
pub fn judge_circles(d: &mut Decision<'_>) -> bool {
    let now = d.now;
    let mut owners = std::mem::take(&mut d.work.suspects);
    owners.retain(|owner| d.core.is_in_circle(owner, now));
    let ids = owners.iter().flat_map(|owner| d.core.queues.ids_of(owner));
    let ids: BTreeSet<WaiterId> = ids.collect();
    let mut first = None;
    for id in ids {
        let Some(circle) = proven(d, |core| core.circle_through(id, now)) else {
            continue;
        };
        if deadlock::finds_a_way(d, id) {
            // There may be another one.
            d.work.suspects.extend(owners);
            return true;
        }
        first.get_or_insert((id, circle));
    }
    let Some((id, circle)) = first else {
        return false;
    };
    Counters::up(&mut d.core.counters.deadlocks);
    waiting::refuse(d, id, Refusal::Deadlock { circle });
    d.work.suspects.extend(owners);
    true
}

/// A circle, when each key in it was looked at: others may have taken a lock or
/// left it, and nobody told.
pub fn proven(
    d: &mut Decision<'_>,
    find: impl Fn(&Core) -> Option<Vec<Link>>,
) -> Option<Vec<Link>> {
    let mut circle = find(d.core)?;
    // A wait whose time is over holds nobody up.
    for id in d.core.queues.over(d.now, usize::MAX) {
        let key = d.core.queues.get(id).and_then(|waiter| waiter.keys.first());
        if key.is_some_and(|key| d.ks.is_at_hand(key)) {
            timeouts::timed_out(d, id);
        }
    }
    for _ in 0..MOST_LOOKS {
        if !circle.iter().all(|link| d.ks.is_at_hand(&link.on)) {
            // Whoever can look at all of them judges it.
            let first = circle.into_iter().next();
            d.core.due.suspects.extend(first.map(|link| link.waits));
            return None;
        }
        for link in &circle {
            reconcile::read(d, &link.on, &link.for_);
            reconcile::know_holder(d, &link.on);
        }
        let again = find(d.core)?;
        if again == circle {
            break;
        }
        circle = again;
    }
    Some(circle)
}

/// A waiter whose owner holds one of its keys may not wait on: ONCE, or a
/// mode that does not go with the one it has.
fn cannot_wait(d: &mut Decision<'_>, key: &Key, id: WaiterId) -> Option<Refusal> {
    let waiter = d.core.queues.get(id).cloned()?;
    if waiter.is_late(d.now) {
        return None;
    }
    let want = &waiter.want;
    let mut look = reconcile::read(d, key, &want.owner);
    match acquire::may(d, key, &want.owner, want.mode, &mut look) {
        Ok(Some(How::Nest)) if waiter.once => Some(held(key, &want.owner)),
        Err(refusal @ Refusal::OtherMode { .. }) => Some(refusal),
        _ => None,
    }
}
