//! A key as a request finds it.

use super::head::{self, Next};
use super::{reconcile, waiting, Decision, Key, Look};

/// The key as `owner` sees it, after what is due on it has happened: an ended
/// hold is told of, and a free lock goes to the head of its queue.
pub fn look(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    let found = reconcile::read(d, key, owner);
    with_due(d, key, owner, found)
}

/// The same for an owner that is to release the lock.
pub fn look_to_release(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    let found = reconcile::read_to_release(d, key, owner);
    with_due(d, key, owner, found)
}

fn with_due(d: &mut Decision<'_>, key: &Key, owner: &[u8], mut look: Look) -> Look {
    if look.kind.is_for_several() && reconcile::end_leases(d, key) {
        look = reconcile::read(d, key, owner);
    }
    let one = match head::next(d.core, key) {
        // Who waits for several keys has had its look at the others.
        Some(Next::Waiter(id)) => d.core.queues.get(id).is_some_and(|w| !w.is_many()),
        Some(Next::Subscribers) => true,
        None => return look,
    };
    let is_free = look.is_free() && one;
    if !is_free && !d.work.dirty.contains(key) {
        return look;
    }
    d.work.dirty.insert(key.clone());
    waiting::drain(d);
    reconcile::read(d, key, owner)
}
