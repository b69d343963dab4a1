//! What an owner's other requests come to when it gets a hold: they nest, are
//! refused, or go first.

use super::{acquire, deadlock, queue, sight, waiting};
use std::collections::BTreeSet;

use super::acquire::{held, How};
use super::queue::Waiter;
use super::rank::Rank;
use super::stats::Counters;
use super::{Core, Decision, Key, Link, Refusal, WaiterId};

/// A circle is believed after so many looks at the most, whatever others do.
const MOST_LOOKS: u32 = 16;

impl Core {
    /// An owner has come to hold a key, or lost a request for it: its other requests
    /// for the key nest at once, or are refused. What else comes of it is judged when
    /// nobody can be granted any more.
    pub(super) fn join(&mut self, key: &Key, owner: &[u8]) {
        let Some((owner, _)) = self.by_owner.get_key_value(owner) else {
            return;
        };
        let owner = owner.clone();
        // Where nobody waits, nobody waits for the new holder.
        if self.entry(key).is_none_or(|entry| entry.queue().is_empty()) {
            return;
        }
        for (rank, id) in self.requests(&owner, key) {
            self.nesting.insert((rank, id, key.clone()));
        }
        self.suspects.insert(owner.clone());
        self.risen.insert((key.clone(), owner));
    }
}

/// The first request for a key that its owner has come to hold nests there, is
/// refused, or waits on; if it stands before this place. Whether there was one.
pub fn nest_first(d: &mut Decision<'_>, before: Option<&Rank>) -> bool {
    let Some((rank, id, key)) = d.core.nesting.first().cloned() else {
        return false;
    };
    if before.is_some_and(|before| rank >= *before) {
        return false;
    }
    d.core.nesting.pop_first();
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
    for (key, owner) in std::mem::take(&mut d.core.risen) {
        for (rank, id) in d.core.requests(&owner, &key) {
            let upgrades = |w: &Waiter| d.core.upgrades(&w.keys, &w.want);
            if d.core.waiters.get(&id).is_some_and(upgrades) {
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
            d.core.rerank(id, rank);
        } else {
            continue;
        }
        d.core
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
    let mut owners = std::mem::take(&mut d.core.suspects);
    owners.retain(|owner| d.core.is_in_circle(owner, now));
    let requests = owners.iter().filter_map(|owner| d.core.by_owner.get(owner));
    let ids: BTreeSet<WaiterId> = requests.flat_map(|r| r.ids()).collect();
    let mut first = None;
    for id in ids {
        let Some(circle) = proven(d, |core| core.circle_through(id, now)) else {
            continue;
        };
        if deadlock::finds_a_way(d, id) {
            // There may be another one.
            d.core.suspects.extend(owners);
            return true;
        }
        first.get_or_insert((id, circle));
    }
    let Some((id, circle)) = first else {
        return false;
    };
    Counters::up(&mut d.core.counters.deadlocks);
    waiting::refuse(d, id, Refusal::Deadlock { circle });
    d.core.suspects.extend(owners);
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
    let limit = d.now.mono_us.saturating_add(1);
    for id in d.core.timeouts.before(limit, usize::MAX) {
        let key = d
            .core
            .waiters
            .get(&id)
            .and_then(|waiter| waiter.keys.first());
        if key.is_some_and(|key| d.ks.is_at_hand(key)) {
            queue::timed_out(d, id);
        }
    }
    for _ in 0..MOST_LOOKS {
        if !circle.iter().all(|link| d.ks.is_at_hand(&link.on)) {
            // Whoever can look at all of them judges it.
            let first = circle.into_iter().next();
            d.core.later.suspects.extend(first.map(|link| link.waits));
            return None;
        }
        for link in &circle {
            sight::see(d, &link.on, &link.for_);
            waiting::know_holder(d, &link.on);
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
    let waiter = d.core.waiters.get(&id).cloned()?;
    if waiter.is_late(d.now) {
        return None;
    }
    let want = &waiter.want;
    let mut look = sight::see(d, key, &want.owner);
    match acquire::may(d, key, &want.owner, want.mode, &mut look) {
        Ok(Some(How::Nest)) if waiter.once => Some(held(key, &want.owner)),
        Err(refusal @ Refusal::OtherMode { .. }) => Some(refusal),
        _ => None,
    }
}
