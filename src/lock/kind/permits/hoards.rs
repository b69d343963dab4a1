//! Owners that hold permits of a lock and wait for more of them. Who waits for whom cannot be
//! told: any that come back will do. But the first in the queue can never be served if what
//! is held by those who wait here leaves fewer than it needs.

use crate::lock::{Core, Key, Link, Mode, Owner, WaiterId};

/// Among so many of its own requests one of another owner is sought, to be named too.
const MOST_NAMED: usize = 64;

/// The newest request by which those who wait for permits here hold so many of them that the
/// first in the queue can never have its own; and who waits for whom.
pub fn hoarded(core: &Core, key: &Key) -> Option<(WaiterId, Vec<Link>)> {
    let shared = core.locks.shared(key)?;
    let first = core.queues.waiting(key).next()?;
    let limit = shared.pool()?.limit;
    let free_in_time = limit.saturating_sub(shared.stuck());
    let is_short = first.want.mode == Mode::Permits && first.want.share.count() > free_in_time;
    // Those who are to be sent away keep nobody back, and nobody does of whom it is not known yet
    // that they wait.
    let is_known = !core.queues.may_be_sent_away(key) && !core.heard.is_new_here(&core.locks, key);
    let is_judged = core.rules.detect_deadlocks && is_known;
    if !is_short || shared.stuck() == 0 || !is_judged {
        return None;
    }
    // The newest first.
    let line = core.queues.line(key);
    let mut hoarders = line.hoarders.iter().rev().filter_map(|id| {
        let owner = &core.queues.get(*id)?.want.owner;
        let holds = shared.hold(owner).is_some_and(|hold| hold.waits);
        holds.then_some((*id, owner))
    });
    let (id, me) = hoarders.next()?;
    let other = match first.want.owner == *me {
        false => &first.want.owner,
        true => hoarders
            .take(MOST_NAMED)
            .find(|(_, other)| *other != me)
            .map_or(me, |(_, other)| other),
    };
    let link = |waits: &Owner, for_: &Owner| Link {
        waits: waits.clone(),
        on: key.clone(),
        for_: for_.clone(),
    };
    let mut cycle = vec![link(me, other)];
    if other != me {
        cycle.push(link(other, me));
    }
    Some((id, cycle))
}

/// Marks that are not true any more do not keep the newest that is from being found soon.
pub fn forget_hoards(core: &mut Core, key: &Key) {
    let locks = &core.locks;
    let queues = &mut core.queues;
    queues.forget_hoards(key, |owner| locks.has_permits(key, owner));
}
