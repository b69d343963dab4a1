//! What follows when a lock is left free, and for those who wait by subscription when
//! it is not.

use super::counters::Counters;
use super::head;
use super::{Decision, Key, Whom};

/// The lock is free: it goes to those who wait when the decision is made, and
/// whoever waits elsewhere learns of it if it is still to be had then.
pub fn left_free(d: &mut Decision<'_>, key: &Key, whom: Whom) {
    if head::is_waited_for(d.core, key) {
        d.work.dirty.insert(key.clone());
        d.work.freed.insert(key.clone(), whom);
    } else {
        wake(d, key, whom);
    }
}

/// Whoever waits by subscription is to know that the key is free, unless their
/// turn has begun with that.
pub fn wake(d: &mut Decision<'_>, key: &Key, whom: Whom) {
    if !d.core.subscribers.is_turn(key) {
        d.wake(key, whom);
    }
}

/// Somebody who is none of rlock's own has taken the key in its turn, or had it
/// meanwhile.
pub fn turn_was_used(d: &mut Decision<'_>, key: &Key) {
    if d.core.subscribers.is_turn(key) {
        Counters::up(&mut d.core.counters.turns_used);
        drop_subscribers(d, key);
    }
}

/// Nobody waits for the key by subscription any more, as far as is known.
pub fn drop_subscribers(d: &mut Decision<'_>, key: &Key) {
    if d.core.subscribers.forget(key) {
        d.look_later(key);
    }
}
