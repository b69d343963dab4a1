//! Owners that hold permits of a lock and wait for more of them. Who waits for whom cannot be
//! told: any that come back will do. But the first in the queue can never be served if what
//! is held by those who wait here leaves fewer than it needs.

use crate::lock::table::{Party, Shared};
use crate::lock::{Core, Key, Link, Mode, Owner, WaiterId};

/// The newest request by which those who wait for permits here hold so many of them that the
/// first in the queue can never have its own; and who waits for whom.
pub fn hoarded(core: &Core, key: &Key) -> Option<(WaiterId, Vec<Link>)> {
    let shared = core.locks.shared(key)?;
    let first = core.queues.waiting(key).next()?;
    let limit = shared.pool?.limit;
    let free_in_time = limit.saturating_sub(shared.stuck());
    let is_short = first.want.mode == Mode::Permits && first.want.share.count() > free_in_time;
    // Those who are to be sent away keep nobody back.
    let is_judged = core.rules.detect_deadlocks && !core.queues.any_sent_away();
    if !is_short || shared.stuck() == 0 || !is_judged {
        return None;
    }
    let id = newest(core, key, shared)?;
    let me = &core.queues.get(id)?.want.owner;
    let other = match first.want.owner == *me {
        false => &first.want.owner,
        true => other_who_waits(shared, me).unwrap_or(me),
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

/// The newest request of those who hold permits and wait.
fn newest(core: &Core, key: &Key, shared: &Shared) -> Option<WaiterId> {
    let holds = |owner: &Owner| shared.party(owner).is_some_and(|party| party.waits);
    let ids = core.queues.line(key).queue.ids();
    let its = ids.filter(|id| core.queues.get(*id).is_some_and(|w| holds(&w.want.owner)));
    its.max()
}

fn other_who_waits<'a>(shared: &'a Shared, me: &Owner) -> Option<&'a Owner> {
    let waits = |party: &&Party| party.waits && party.hold.owner != *me;
    shared.parties().find(waits).map(|party| &party.hold.owner)
}
