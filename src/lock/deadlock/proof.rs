//! Whether a cycle is one in truth.

use crate::lock::{reconcile, timeouts};
use crate::lock::{Core, Decision, Link};

/// A cycle is believed after so many looks at the most, whatever others do.
const MOST_LOOKS: u32 = 16;

/// A cycle, when each key in it was looked at: others may have taken a lock or
/// left it, and nobody told.
pub fn proven(
    d: &mut Decision<'_>,
    find: impl Fn(&Core) -> Option<Vec<Link>>,
) -> Option<Vec<Link>> {
    let mut cycle = find(d.core)?;
    // A wait whose time is over holds nobody up.
    for id in d.core.queues.over(d.now, usize::MAX) {
        let key = d.core.queues.get(id).and_then(|waiter| waiter.keys.first());
        if key.is_some_and(|key| d.ks.is_at_hand(key)) {
            timeouts::timed_out(d, id);
        }
    }
    for _ in 0..MOST_LOOKS {
        if !cycle.iter().all(|link| d.ks.is_at_hand(&link.on)) {
            // Whoever can look at all of them judges it.
            let first = cycle.into_iter().next();
            d.core.due.suspects.extend(first.map(|link| link.waits));
            return None;
        }
        for link in &cycle {
            reconcile::read(d, &link.on, &link.for_);
            reconcile::know_holder(d, &link.on);
        }
        let again = find(d.core)?;
        if again == cycle {
            break;
        }
        cycle = again;
    }
    Some(cycle)
}
