//! Redisson's turn.
//!
//! Who waits by subscription, as Redisson does, takes a lock only when it finds it
//! free, and a lock that goes from one waiter to the next never is. So once somebody
//! is known to wait in that way, a *place* is put into the queue for all of them: at
//! its end, or where it is four grants away. At its head the lock stays free, the
//! wake-up message is published, and no request gets it, until somebody else has
//! taken it, nobody listens any more, or the time of a turn is over. After a turn
//! that nobody used the next place is put twice as many grants away, 64 at most.
//!
//! The shell tells who listens ([`subscribed`]): whenever a lock is left free, by the
//! message that is published then, and now and then when one is handed on
//! ([`Notice::WhoListens`]) while no place is in its queue. To ask costs as much as a
//! tenth of a hand-over.

use super::state::Place;
use crate::lock::counters::Counters;
use crate::lock::head::{self, Next};
use crate::lock::queue::Rank;
use crate::lock::{
    leaving, reconcile, silence, Core, Decision, Key, Mode, Notice, Notices, WaiterId, WakeTarget,
};

/// At most so many grants go before a place.
const NEAREST: usize = 4;

/// Of so many hand-overs in a row one asks who listens. Together with the above: from
/// the moment somebody listens it is eight grants at most.
const ASKS_ONE_IN: u8 = 4;

/// How often in a turn it is asked whether somebody listens still, us.
const LOOK_AGAIN_US: i64 = 5_000;

/// And how often while their place keeps readers out, us.
const LOOK_AT_PLACE_US: i64 = 100_000;

/// So many readers behind a place are looked at, and so many keys for each.
const READERS_LOOKED_AT: usize = 16;
const KEYS_LOOKED_AT: usize = 4096;

/// Whether anybody waits for a key by subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    Nobody,
    /// Somebody does; `shared`: for a read/write lock.
    Waiting {
        shared: bool,
    },
    /// And has got the message that the key is free.
    Woken {
        shared: bool,
    },
}

fn put_place(core: &mut Core, key: &Key, shared: bool) {
    let id = core.queues.number();
    let behind = core.queues.line(key).queue.iter().nth(NEAREST);
    core.subscribers.put(key, shared, || match behind {
        Some((rank, _)) => Rank::just_before(rank, id),
        None => Rank::arrived(id),
    });
}

/// Those who subscribe are to know that the key is free.
fn wake(d: &mut Decision<'_>, key: &Key) {
    let whom = if d.core.subscribers.are_shared(key) {
        WakeTarget::AllShared
    } else {
        WakeTarget::One
    };
    d.wake(key, whom);
}

fn begin_turn(d: &mut Decision<'_>, key: &Key, turn_us: i64) {
    let until = d.now.mono.plus_us(turn_us);
    let look = until.min(d.now.mono.plus_us(LOOK_AGAIN_US));
    if d.core.subscribers.begin_turn(key, until, look) {
        Counters::up(&mut d.core.counters.turns);
    }
}

/// A reader is kept out by a place that is not at its turn, which may be long after the
/// last of those who subscribe has gone.
pub fn keeps_out(d: &mut Decision<'_>, key: &Key) {
    if d.core.subscribers.next_look(key).is_none() {
        let next = d.now.mono.plus_us(LOOK_AT_PLACE_US);
        d.core.subscribers.look_at(key, Some(next));
    }
}

/// Whether anybody waits for a lock that this owner holds.
fn holds_others_up(core: &Core, owner: &[u8]) -> bool {
    let mut keys = core.queues.keys().take(KEYS_LOOKED_AT);
    keys.any(|key| core.locks.hold(key, owner).is_some())
}

/// It was found whether anybody waits for the key by subscription.
pub fn subscribed(d: &mut Decision<'_>, key: &Key, listening: Listening) {
    match (d.core.rules.redisson_yield_us, listening) {
        (None, _) | (_, Listening::Nobody) => d.drop_subscribers(key),
        _ if d.core.subscribers.is_turn(key) => look_at_turn(d, key),
        (Some(turn_us), Listening::Woken { shared }) => {
            put_place(d.core, key, shared);
            let is_next = head::next(d.core, key) == Some(Next::Subscribers);
            if is_next && reconcile::read(d, key, &[]).is_free() {
                begin_turn(d, key, turn_us);
            }
        }
        (_, Listening::Waiting { shared }) => {
            put_place(d.core, key, shared);
            look_at_place(d, key);
            silence::for_subscribers(d, key);
        }
    }
    d.core.watchdogs.hints.stir(key);
    d.look_later(key);
}

/// Those who subscribe are first in the queue: if the key is free it is left to
/// them. `false`: they have no place any more.
pub fn offer(d: &mut Decision<'_>, key: &Key) -> bool {
    let Some(turn_us) = d.core.rules.redisson_yield_us else {
        d.drop_subscribers(key);
        return false;
    };
    if d.core.subscribers.is_turn(key) || !reconcile::read(d, key, &[]).is_free() {
        return true;
    }
    wake(d, key);
    begin_turn(d, key, turn_us);
    true
}

/// The key went to the next without being free: is there anybody who would have
/// liked to find it so?
pub fn passed(core: &mut Core, out: &mut Notices, key: &Key, shared: bool) {
    if core.rules.redisson_yield_us.is_none() || core.subscribers.are_served(key) {
        return;
    }
    if core.locks.passes(key, ASKS_ONE_IN) {
        let key = key.clone();
        out.push(Notice::WhoListens { key, shared });
    }
}

/// Somebody listens still: the place goes on to be looked at for as long as
/// anybody stands behind it.
fn look_at_place(d: &mut Decision<'_>, key: &Key) {
    let look = d.core.subscribers.next_look(key);
    if look.is_some_and(|at| at <= d.now.mono) {
        let_readers_past(d, key);
        let waits = !d.core.queues.line(key).queue.is_empty();
        let next = d.now.mono.plus_us(LOOK_AT_PLACE_US);
        d.core.subscribers.look_at(key, waits.then_some(next));
    }
}

/// A reader that a place alone keeps out can be part of a cycle that the search
/// does not see: no owner stands for those who subscribe. So one that somebody
/// waits for elsewhere goes before them.
fn let_readers_past(d: &mut Decision<'_>, key: &Key) {
    let Some(Place { rank, .. }) = d.core.subscribers.place(key).cloned() else {
        return;
    };
    let queue = &d.core.queues.line(key).queue;
    let waiters = queue.iter().filter(|(other, _)| **other > rank);
    let readers = waiters
        .take(READERS_LOOKED_AT)
        .filter_map(|(_, id)| Some((id, d.core.queues.get(id)?)))
        .take_while(|(_, waiter)| waiter.want.mode == Mode::Read);
    let past: Vec<WaiterId> = readers
        .filter(|(_, waiter)| holds_others_up(d.core, &waiter.want.owner))
        .map(|(id, _)| id)
        .collect();
    for id in past {
        let place = Rank::just_before(&rank, d.core.queues.number());
        leaving::rerank(d.core, id, |waiter| waiter.rank = place);
    }
}

/// A turn goes on, or its time is over.
fn look_at_turn(d: &mut Decision<'_>, key: &Key) {
    let Some(until) = d.core.subscribers.place(key).and_then(|place| place.turn) else {
        return;
    };
    if until > d.now.mono {
        let next = d.now.mono.plus_us(LOOK_AGAIN_US);
        d.core.subscribers.look_at(key, Some(next.min(until)));
        return;
    }
    d.core.subscribers.turn_was_in_vain(key, d.now);
    // Who subscribes may try by a command of rlock's, and was refused.
    if !head::is_waited_for(d.core, key) {
        wake(d, key);
    }
}
