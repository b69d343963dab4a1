//! Who is first in the queue of a key, and who is in the way of that one.

use super::table::{Hold, SharedKind};
pub use super::types::Next;
use super::{Core, Key, Mode, Notice};

/// The first in the queue of a key, the place of subscribers counted.
// As a rule nobody waits anywhere, and every request asks several times.
#[inline(always)]
pub fn next(core: &Core, key: &Key) -> Option<Next> {
    if core.queues.is_empty() && !core.subscribers.have_places() {
        return None;
    }
    first_in_line(core, key)
}

fn first_in_line(core: &Core, key: &Key) -> Option<Next> {
    let first = core.queues.line(key).first();
    if let Some(place) = core.subscribers.place(key) {
        if first.is_none_or(|(rank, _)| place.rank < *rank) {
            return Some(Next::Subscribers);
        }
    }
    first.map(|(_, id)| Next::Waiter(id))
}

/// Whether somebody waits for the key.
pub fn is_waited_for(core: &Core, key: &Key) -> bool {
    next(core, key).is_some()
}

/// Whether an owner that holds the lock is in the way of whoever is first in its queue.
pub fn keeps_out(core: &Core, key: &Key, owner: &[u8]) -> bool {
    let Some(Next::Waiter(id)) = next(core, key) else {
        // Those who subscribe have a place, and want it free.
        return is_waited_for(core, key);
    };
    let Some(want) = core.queues.get(id).map(|waiter| &waiter.want) else {
        return false;
    };
    let reads_too = core.locks.shared(key).is_some_and(|shared| {
        let reads_alone = |hold: &Hold| !hold.writes;
        shared.kind == SharedKind::ReadWrite && shared.hold(owner).is_some_and(reads_alone)
    });
    *want.owner != *owner && !(want.mode == Mode::Read && reads_too)
}

/// If it is to be found out whether anybody waits for a lock by subscription: no request is first
/// there, and of them nothing is known, or it is long since they were looked for. That is asked so.
pub fn ask_who_listens(core: &Core, key: &Key) -> Option<Notice> {
    let may_wait = match next(core, key) {
        Some(Next::Waiter(_)) => false,
        Some(Next::Subscribers) => true,
        None => core.rules.redisson_yield_us.is_some() && !core.subscribers.are_served(key),
    };
    let shared = core.locks.shared(key);
    let shared = shared.is_some_and(|shared| shared.kind == SharedKind::ReadWrite);
    let key = key.clone();
    may_wait.then_some(Notice::WhoListens { key, shared })
}
