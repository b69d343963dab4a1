//! One decision of the core under way: what it looks at and what it leaves.

use std::collections::{BTreeMap, BTreeSet};

use super::address::Address;
use super::counters::Counters;
use super::kind::lock_kind::{Kinds, LockKind};
use super::table::{Entry, Hold};
use super::work::Work;
use super::{head, leaving};
use super::{
    Core, Event, Key, Keyspace, Mode, Notice, Notices, Now, Outcome, Owner, WaiterId, WakeTarget,
    WallMs, Write,
};

/// A piece of long work of which so much has come goes on in another decision.
const MANY: usize = 1024;

/// What a kind of lock does in a decision.
pub type AnyKind = dyn for<'a> LockKind<Decision<'a>>;

/// The core, the keyspace, the clocks, and the notices so far.
pub struct Decision<'a> {
    pub kinds: &'static Kinds<AnyKind>,
    pub core: &'a mut Core,
    pub ks: &'a mut dyn Keyspace,
    pub now: Now,
    pub out: &'a mut Notices,
    /// How many writes changed nothing, and events nobody hears.
    unsaid: usize,
    /// Read/write locks of which it was told that they are free.
    woken: Option<BTreeSet<Key>>,
    /// What it has stirred up and is to drain yet.
    pub(super) work: Box<Work>,
    /// Of requests for several keys that were tried: the first key that was not to be
    /// had. Until that one changes there is no use in trying again.
    held_up: Option<BTreeMap<WaiterId, Key>>,
    /// The request that is decided, if it stands in a queue, and what became of it.
    pub(super) asking: Option<WaiterId>,
    pub(super) answer: Option<Outcome>,
}

impl<'a> Decision<'a> {
    pub(super) fn new(
        kinds: &'static Kinds<AnyKind>,
        core: &'a mut Core,
        ks: &'a mut dyn Keyspace,
        now: Now,
        out: &'a mut Notices,
    ) -> Self {
        let work = core.spare.take().unwrap_or_default();
        Self {
            kinds,
            core,
            ks,
            now,
            out,
            unsaid: 0,
            woken: None,
            work,
            held_up: None,
            asking: None,
            answer: None,
        }
    }

    /// What became of the request that is decided, if it stood in a queue. What is not
    /// drained yet is due from now on.
    pub(super) fn end(self) -> Option<Outcome> {
        let Self {
            core,
            now,
            mut work,
            answer,
            ..
        } = self;
        if !work.is_empty() {
            core.due.append(std::mem::take(&mut *work));
        }
        core.spare = Some(work);
        core.count_over(now);
        answer
    }

    /// A request that waits gets its reply: the one that is decided with the decision.
    /// `to`: where others are told.
    pub(super) fn answer(&mut self, waiter: WaiterId, to: Option<Address>, outcome: Outcome) {
        if self.asking == Some(waiter) {
            self.answer = Some(outcome);
        } else {
            self.out.push(Notice::Answer {
                waiter,
                to,
                outcome,
                wanted: false,
            });
        }
    }

    /// The queue of a key is to be looked at before the decision is over.
    pub(super) fn look_later(&mut self, key: &Key) {
        leaving::look_later(self.core, &mut self.work, key);
    }

    /// An owner has come to hold a key, or lost a request for it: its other requests
    /// for the key nest at once, or are refused. What else comes of it is judged when
    /// nobody can be granted any more.
    pub(super) fn joined(&mut self, key: &Key, owner: &[u8]) {
        let queues = &self.core.queues;
        // Where nobody waits, nobody waits for the new holder.
        if queues.line(key).queue.is_empty() {
            return;
        }
        let Some(owner) = queues.owner(owner).cloned() else {
            return;
        };
        let requests = queues.requests(&owner, key);
        let requests: Vec<_> = requests.map(|(rank, id)| (rank.clone(), id)).collect();
        leaving::mark_waits(self.core, key, &owner, requests.iter().map(|(_, id)| *id));
        let nesting = requests.into_iter();
        let nesting = nesting.map(|(rank, id)| (rank, id, key.clone()));
        self.work.nesting.extend(nesting);
        self.work.suspects.insert(owner.clone());
        self.work.risen.insert((key.clone(), owner));
    }

    /// An owner has lost holds of a key: its requests for the key wait like all others from
    /// now on, and so for those ahead of them. What comes of it is judged as above.
    pub(super) fn parted(&mut self, key: &Key, owner: &Owner) {
        let queues = &self.core.queues;
        let waits = !queues.line(key).queue.is_empty() && queues.first_of(owner, key).is_some();
        if waits {
            self.work.suspects.insert(owner.clone());
        }
    }

    /// The same for all who hold the key, which are not many.
    pub(super) fn all_parted(&mut self, key: &Key) {
        if self.core.queues.line(key).queue.is_empty() {
            return;
        }
        let holds = self.core.locks.get(key).into_iter().flat_map(Entry::holds);
        let owners: Vec<Owner> = holds.map(|hold| hold.owner.clone()).collect();
        for owner in owners {
            self.parted(key, &owner);
        }
    }

    /// Frees a held lock and hands it on; the holds that ended with it, if watched.
    pub(super) fn free(&mut self, key: &Key, event: Event, target: WakeTarget) -> Vec<Hold> {
        self.write(key, Write::Delete);
        self.tell(key, event);
        self.left_free(key, target);
        self.forget_holders(key)
    }

    /// Forgets who held the key; the holds that ended with it, if watched.
    pub(super) fn forget_holders(&mut self, key: &Key) -> Vec<Hold> {
        self.all_parted(key);
        self.core.locks.forget_holders(key)
    }

    /// The lock is free: it goes to those who wait when the decision is made, and
    /// whoever waits elsewhere learns of it if it is still to be had then.
    pub(super) fn left_free(&mut self, key: &Key, target: WakeTarget) {
        if head::is_waited_for(self.core, key) {
            self.work.dirty.insert(key.clone());
            self.work.freed.insert(key.clone(), target);
        } else {
            self.wake(key, target);
        }
    }

    /// A key that was presumed to be a lock has run out.
    pub(super) fn presumed_left(&mut self, key: &Key, target: WakeTarget) {
        if head::is_waited_for(self.core, key) || self.core.subscribers.is_turn(key) {
            return self.left_free(key, target);
        }
        let key = key.clone();
        self.out.push(Notice::WakeListeners { key, target });
    }

    /// Whoever waits by subscription is to know that the key is free, unless their turn
    /// has begun with that.
    pub(super) fn wake(&mut self, key: &Key, target: WakeTarget) {
        if self.core.subscribers.is_turn(key) {
            return;
        }
        let key = key.clone();
        if target != WakeTarget::One {
            let woken = self.woken.get_or_insert_default();
            woken.insert(key.clone());
        }
        self.out.push(Notice::Wake { key, target });
    }

    /// Whether it was told of a read/write lock that it is free.
    pub(super) fn is_woken(&self, key: &Key) -> bool {
        let woken = self.woken.as_ref();
        woken.is_some_and(|woken| woken.contains(key))
    }

    /// A request for several keys was tried, and this one was not to be had.
    pub(super) fn hold_up(&mut self, id: WaiterId, key: &Key) {
        let held_up = self.held_up.get_or_insert_default();
        held_up.insert(id, key.clone());
        leaving::stir(self.core, id);
    }

    /// The key that a request for several keys lacks, if it was tried.
    pub(super) fn lacks(&self, id: WaiterId) -> Option<&Key> {
        self.held_up.as_ref()?.get(&id)
    }

    /// Somebody who is none of rlock's own has taken the key in its turn, or had it
    /// meanwhile.
    pub(super) fn turn_was_used(&mut self, key: &Key) {
        if self.core.subscribers.is_turn(key) {
            Counters::up(&mut self.core.counters.turns_used);
            self.drop_subscribers(key);
        }
    }

    /// Nobody waits for the key by subscription any more, as far as is known.
    pub(super) fn drop_subscribers(&mut self, key: &Key) {
        if self.core.subscribers.forget(key) {
            self.core.watchdogs.hints.stir(key);
            self.look_later(key);
        }
    }

    /// Tells an event of rlock's own, and counts it.
    pub(super) fn tell(&mut self, key: &Key, event: Event) {
        self.core.counters.event(event);
        self.say(|| Notice::Event {
            key: key.clone(),
            event,
        });
    }

    /// A keyspace event, if anybody can hear it.
    fn say(&mut self, event: impl FnOnce() -> Notice) {
        if self.core.rules.emits_events {
            self.out.push(event());
        } else {
            self.unsaid = self.unsaid.saturating_add(1);
        }
    }

    /// How much has come of this decision so far.
    pub fn size(&self) -> usize {
        self.unsaid.saturating_add(self.out.len())
    }

    /// Whether very much has come of it since it was this size.
    pub fn is_long(&self, since: usize) -> bool {
        self.size().saturating_sub(since) >= MANY
    }

    /// Does this with one after the other until very much has come of it: with how many.
    pub fn as_many<T>(&mut self, all: &[T], mut act: impl FnMut(&mut Self, &T)) -> usize {
        let before = self.size();
        for (done, one) in (1..).zip(all) {
            act(self, one);
            if self.is_long(before) {
                return done;
            }
        }
        all.len()
    }

    /// Writes at once, so that whatever is looked at next is true. Whether it did.
    pub fn write(&mut self, key: &Key, write: Write) -> bool {
        let written = self.ks.write(key, &write);
        if written {
            let key = key.clone();
            self.say(|| Notice::Wrote { key, write });
        } else {
            self.unsaid = self.unsaid.saturating_add(1);
        }
        written
    }

    /// The owner now has so many holds in this mode, `by` more than before.
    pub fn count(&mut self, key: &Key, owner: &Owner, mode: Mode, holds: i64, by: i64) {
        let count = Write::Count {
            owner: owner.clone(),
            mode,
            holds,
            by,
        };
        self.write(key, count);
    }

    /// The key ends at this moment, if it does not already.
    pub fn expire_at(&mut self, key: &Key, from: Option<WallMs>, at: Option<WallMs>) {
        if let Some(at) = at.filter(|_| from != at) {
            self.write(key, Write::ExpireAt(at));
        }
    }
}
