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
//! The shell tells who listens ([`Core::subscribed`]): whenever a lock is left free,
//! by the message that is published then, and now and then when one is handed on
//! ([`Effect::Passed`]) while no place is in its queue. To ask costs as much as a
//! tenth of a hand-over.

use super::queue::Rank;
use super::sight;
use super::stats::Counters;
use super::{Core, Decision, Effect, Key, Kind, Mode, Now, WaiterId, Whom};

/// At most so many grants go before a place.
const NEAREST: u32 = 4;

/// Of so many hand-overs in a row one asks who listens. Together with the above: from
/// the moment somebody listens it is eight grants at most.
const ASKS_ONE_IN: u8 = 4;

/// Within so many grants a turn comes, as long as turns are used.
const NEAR: u32 = 8;

/// And so many after turns that nobody used.
const FARTHEST: u32 = 64;

/// How often in a turn it is asked whether somebody listens still, us.
const LOOK_AGAIN_US: i64 = 5_000;

/// And how often while their place keeps readers out, us.
const LOOK_AT_PLACE_US: i64 = 100_000;

/// So many readers behind a place are looked at, and so many keys for each.
const READERS_LOOKED_AT: usize = 16;
const KEYS_LOOKED_AT: usize = 4096;

/// So many locks are remembered whose turns were in vain.
pub(super) const MOST_IN_VAIN: usize = 65_536;

/// Those who wait for a lock by subscription.
#[derive(Clone, Debug)]
pub struct Subscribers {
    /// They wait for a read/write lock.
    shared: bool,
    /// Within how many grants their next turn comes.
    distance: u32,
    /// So many grants more, and they may have a place.
    not_before: u32,
    place: Option<Place>,
}

#[derive(Clone, Debug)]
struct Place {
    rank: Rank,
    /// Their turn is under way, until this monotonic us.
    turn: Option<i64>,
    /// When it is asked next whether somebody listens still, monotonic us.
    look: Option<i64>,
}

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

/// Who is next in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Waiter(WaiterId),
    Subscribers,
}

impl Core {
    /// The first in the queue of a key, the place of subscribers counted.
    pub(super) fn next(&self, key: &Key) -> Option<Next> {
        let first = self.queues.line(key).first();
        if let Some(place) = self.place(key) {
            if first.as_ref().is_none_or(|(rank, _)| place.rank < **rank) {
                return Some(Next::Subscribers);
            }
        }
        first.map(|(_, id)| Next::Waiter(id))
    }

    fn place(&self, key: &Key) -> Option<&Place> {
        if self.subscribers.is_empty() {
            return None;
        }
        self.subscribers.get(key)?.place.as_ref()
    }

    /// Whether those who subscribe have a place in the queue of the key.
    pub(super) fn has_place(&self, key: &Key) -> bool {
        self.place(key).is_some()
    }

    /// Whether it is the turn of those who subscribe: the key is left free for them.
    pub fn has_turn(&self, db: i32, name: &[u8]) -> bool {
        !self.subscribers.is_empty() && self.is_turn(&self.locks.key(db, name))
    }

    fn is_turn(&self, key: &Key) -> bool {
        self.place(key).is_some_and(|place| place.turn.is_some())
    }

    /// Whether anybody is known to wait by subscription, on any key.
    pub fn has_subscribers(&self) -> bool {
        !self.subscribers.is_empty()
    }

    /// The monotonic us at which a turn, or a place, is to be looked at.
    pub fn next_turn(&self) -> Option<i64> {
        self.turn_looks.first()
    }

    /// The keys whose turn or place is to be looked at, and whether it is that of a
    /// read/write lock: each is due for a [`Core::subscribed`].
    pub fn due_turns(&self, now: Now, most: usize) -> Vec<(Key, bool)> {
        let due = self
            .turn_looks
            .before(now.mono_us.saturating_add(1), most)
            .into_iter();
        due.filter_map(|key| {
            let shared = self.subscribers.get(&key)?.shared;
            Some((key, shared))
        })
        .collect()
    }

    fn put_place(&mut self, key: &Key, shared: bool) {
        // Now and then: what is left of turns in vain on locks that nobody uses.
        if self.subscribers.len() >= self.subscribers_most {
            self.subscribers.retain(|_, known| known.place.is_some());
            self.subscribers.shrink_to_fit();
            let twice = self.subscribers.len().saturating_mul(2);
            self.subscribers_most = twice.max(MOST_IN_VAIN);
        }
        let id = self.queues.number();
        let near = usize::try_from(NEAREST).unwrap_or(usize::MAX);
        let behind = self.queues.line(key).queue().keys().nth(near);
        let rank = match behind {
            Some(rank) => Rank::just_before(rank, id),
            None => Rank::arrived(id),
        };
        let known = self
            .subscribers
            .entry(key.clone())
            .or_insert_with(|| Subscribers {
                shared,
                distance: NEAR,
                not_before: 0,
                place: None,
            });
        known.shared = shared;
        if known.place.is_none() && known.not_before == 0 {
            known.place = Some(Place {
                rank,
                turn: None,
                look: None,
            });
        }
    }

    /// Who is to be woken of those who subscribe.
    fn whom(&self, key: &Key) -> Whom {
        match self.subscribers.get(key) {
            Some(known) if known.shared => Whom::AllShared,
            _ => Whom::One,
        }
    }

    fn begin_turn(&mut self, key: &Key, now: Now) {
        let until = now.mono_us.saturating_add(self.rules.redisson_turn_us);
        let look = until.min(now.mono_us.saturating_add(LOOK_AGAIN_US));
        if let Some(place) = self.place_mut(key) {
            place.turn = Some(until);
            self.look_at(key, Some(look));
            Counters::up(&mut self.counters.turns);
        }
    }

    /// A reader is kept out by a place that is not at its turn, which may be long
    /// after the last of those who subscribe has gone.
    pub(super) fn keeps_out(&mut self, key: &Key, now: Now) {
        let looks = self.place(key).is_none_or(|place| place.look.is_some());
        if !looks {
            self.look_at(key, Some(now.mono_us.saturating_add(LOOK_AT_PLACE_US)));
        }
    }

    /// Whether anybody waits for a lock that this owner holds.
    fn holds_others_up(&self, owner: &[u8]) -> bool {
        let mut keys = self.queues.keys().take(KEYS_LOOKED_AT);
        keys.any(|key| self.locks.get(key).is_some_and(|e| e.hold(owner).is_some()))
    }

    /// Sets when a place is looked at next.
    fn look_at(&mut self, key: &Key, at: Option<i64>) {
        if let Some(place) = self.place_mut(key) {
            let from = std::mem::replace(&mut place.look, at);
            self.turn_looks.change(key, from, at);
        }
    }

    fn place_mut(&mut self, key: &Key) -> Option<&mut Place> {
        self.subscribers.get_mut(key)?.place.as_mut()
    }

    /// Forgets who waits for a key by subscription, and leaves its queue alone: whom
    /// that lets in may not be ours to say, for its slot is on its way to another
    /// node. Whether anything was known.
    pub fn forget_turn(&mut self, key: &Key) -> bool {
        let Some(known) = self.subscribers.remove(key) else {
            return false;
        };
        let look = known.place.and_then(|place| place.look);
        self.turn_looks.change(key, look, None);
        true
    }

    /// One grant more of the key, to an owner that had it not.
    pub(super) fn count_grant(&mut self, key: &Key) {
        if self.subscribers.is_empty() {
            return;
        }
        if let Some(known) = self.subscribers.get_mut(key) {
            known.not_before = known.not_before.saturating_sub(1);
        }
    }

    /// Of turns nothing is remembered.
    pub(super) fn forget_turns(&mut self) {
        let keys: Vec<Key> = self.subscribers.keys().cloned().collect();
        for key in keys {
            self.forget_turn(&key);
        }
    }
}

/// It was found whether anybody waits for the key by subscription.
pub fn subscribed(d: &mut Decision<'_>, key: &Key, listening: Listening) {
    match listening {
        _ if d.core.rules.redisson_turn_us <= 0 => drop_subscribers(d, key),
        Listening::Nobody => drop_subscribers(d, key),
        _ if d.core.is_turn(key) => {
            look_at_turn(d, key);
            // Who subscribes may try by a command of rlock's, and was refused.
            if !d.core.is_turn(key) && !d.core.is_waited_for(key) {
                let whom = d.core.whom(key);
                wake(d, key, whom);
            }
        }
        Listening::Woken { shared } => {
            d.core.put_place(key, shared);
            let is_next = d.core.next(key) == Some(Next::Subscribers);
            if is_next && sight::see(d, key, &[]).kind == Kind::Free {
                d.core.begin_turn(key, d.now);
            }
        }
        Listening::Waiting { shared } => {
            d.core.put_place(key, shared);
            look_at_place(d, key);
        }
    }
    d.look_later(key);
}

/// Those who subscribe are first in the queue: if the key is free it is left to
/// them. `false`: they have no place any more.
pub fn offer(d: &mut Decision<'_>, key: &Key) -> bool {
    if d.core.rules.redisson_turn_us <= 0 {
        drop_subscribers(d, key);
        return false;
    }
    if d.core.is_turn(key) || sight::see(d, key, &[]).kind != Kind::Free {
        return true;
    }
    d.core.begin_turn(key, d.now);
    let whom = d.core.whom(key);
    let key = key.clone();
    d.out.push(Effect::Wake { key, whom });
    true
}

/// Whoever waits by subscription is to know that the key is free, unless their
/// turn has begun with that.
pub fn wake(d: &mut Decision<'_>, key: &Key, whom: Whom) {
    if !d.core.is_turn(key) {
        let key = key.clone();
        d.out.push(Effect::Wake { key, whom });
    }
}

/// The key went to the next without being free: is there anybody who would have
/// liked to find it so?
pub fn passed(d: &mut Decision<'_>, key: &Key, shared: bool) {
    let known = d.core.subscribers.get(key);
    let knows = known.is_some_and(|known| known.place.is_some() || known.not_before > 0);
    if d.core.rules.redisson_turn_us <= 0 || knows {
        return;
    }
    if d.core.locks.passes(key, ASKS_ONE_IN) {
        let key = key.clone();
        d.out.push(Effect::Passed { key, shared });
    }
}

/// Somebody listens still: the place goes on to be looked at for as long as
/// anybody stands behind it.
fn look_at_place(d: &mut Decision<'_>, key: &Key) {
    let look = d.core.place(key).and_then(|place| place.look);
    if look.is_some_and(|at| at <= d.now.mono_us) {
        let_readers_past(d, key);
        let waits = !d.core.queues.line(key).queue().is_empty();
        let next = d.now.mono_us.saturating_add(LOOK_AT_PLACE_US);
        d.core.look_at(key, waits.then_some(next));
    }
}

/// A reader that a place alone keeps out can be part of a circle that the search
/// does not see: no owner stands for those who subscribe. So one that somebody
/// waits for elsewhere goes before them.
fn let_readers_past(d: &mut Decision<'_>, key: &Key) {
    let Some(rank) = d.core.place(key).map(|place| place.rank.clone()) else {
        return;
    };
    let queue = d.core.queues.line(key).queue();
    let waiters = queue.iter().filter(|(other, _)| **other > rank);
    let readers = waiters
        .take(READERS_LOOKED_AT)
        .filter_map(|(_, id)| Some((*id, d.core.queues.get(*id)?)))
        .take_while(|(_, waiter)| waiter.want.mode == Mode::Read);
    let past: Vec<WaiterId> = readers
        .filter(|(_, waiter)| d.core.holds_others_up(&waiter.want.owner))
        .map(|(id, _)| id)
        .collect();
    for id in past {
        d.core.queues.rerank(id, Rank::just_before(&rank, id));
        d.look_later(key);
    }
}

/// A turn goes on, or its time is over.
fn look_at_turn(d: &mut Decision<'_>, key: &Key) {
    let Some(until) = d.core.place(key).and_then(|place| place.turn) else {
        return;
    };
    if until > d.now.mono_us {
        let next = d.now.mono_us.saturating_add(LOOK_AGAIN_US);
        d.core.look_at(key, Some(next.min(until)));
        return;
    }
    d.core.look_at(key, None);
    if let Some(known) = d.core.subscribers.get_mut(key) {
        known.place = None;
        known.distance = known.distance.saturating_mul(2).min(FARTHEST);
        known.not_before = known.distance.saturating_sub(NEAR);
    }
    d.look_later(key);
}

/// Somebody who is none of rlock's own has taken the key in its turn, or had it
/// meanwhile.
pub fn turn_was_used(d: &mut Decision<'_>, key: &Key) {
    if !d.core.is_turn(key) {
        return;
    }
    Counters::up(&mut d.core.counters.turns_used);
    drop_subscribers(d, key);
}

/// Nobody waits for the key by subscription any more, as far as is known.
fn drop_subscribers(d: &mut Decision<'_>, key: &Key) {
    if d.core.forget_turn(key) {
        d.look_later(key);
    }
}
