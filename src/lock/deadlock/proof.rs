//! Whether a cycle is one in truth.

use super::search::Found;

use crate::lock::{reconcile, timeouts};
use crate::lock::{Core, Decision, Link};

/// A cycle is believed after so many looks at the most, whatever others do.
const MOST_LOOKS: u32 = 16;

/// Waits with so many keys end in one go.
const MOST_OVER: usize = 128;

/// A cycle, when each key in it was looked at: others may have taken a lock or
/// left it, and nobody told.
pub fn proven(d: &mut Decision<'_>, find: impl Fn(&Core) -> Found) -> Found {
    let Some(mut cycle) = find(d.core)? else {
        return Ok(None);
    };
    // A wait whose time is over holds nobody up.
    for id in d.core.queues.over(d.now, MOST_OVER) {
        let key = d.core.queues.get(id).and_then(|waiter| waiter.keys.first());
        if key.is_some_and(|key| d.ks.is_at_hand(key)) {
            timeouts::timed_out(d, id);
        }
    }
    let all_left = d.core.queues.over(d.now, 1).is_empty();
    for _ in 0..MOST_LOOKS {
        if !all_left || !cycle.iter().all(|link| d.ks.is_at_hand(&link.on)) {
            // It is judged when they have, and by whoever can look at all of the keys.
            let first = cycle.into_iter().next();
            d.core.due.suspects.extend(first.map(|link| link.waits));
            return Ok(None);
        }
        for link in &cycle {
            look_at(d, link);
        }
        let Some(again) = find(d.core)? else {
            return Ok(None);
        };
        if again == cycle {
            break;
        }
        cycle = again;
    }
    Ok(Some(cycle))
}

/// Finds out whether who is waited for holds the lock.
pub fn look_at(d: &mut Decision<'_>, link: &Link) {
    reconcile::read(d, &link.on, &link.for_);
    reconcile::know_holder(d, &link.on);
}
