//! Who is first in the queue of a key.

use super::{Core, Key, WaiterId};

/// Who is next in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Waiter(WaiterId),
    Subscribers,
}

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
