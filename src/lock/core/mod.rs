//! All that is remembered of locks: the owners of state, and what others ask of them
//! together.

mod describe;
mod list;
mod stats;
mod stock;

pub use describe::{Contended, Known, Waiting};
pub use list::{Cursor, Held, Wanted};
pub use stock::Forgetting;

use crate::lock::address::Address;
use crate::lock::ask::{Ask, Want};
use crate::lock::away::Away;
use crate::lock::counters::Counters;
use crate::lock::deadlock::Inquiry;
use crate::lock::fifo::Fifo;
use crate::lock::heard::Heard;
use crate::lock::heartbeats::Heartbeats;
use crate::lock::in_flight::{Grant, InFlight};
use crate::lock::key::Spare;
use crate::lock::pools::Pools;
use crate::lock::queue::Queues;
use crate::lock::sessions::Sessions;
use crate::lock::subscribers::Subscribers;
use crate::lock::table::Locks;
use crate::lock::tokens::Tokens;
use crate::lock::watchdog::{Losses, Watchdogs};
use crate::lock::work::Work;
use crate::lock::{ClientId, Key, MonoUs, Now, WaiterId, WallMs};

/// What the operator has set.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Refuse a request that would close a cycle of waiting.
    pub detect_deadlocks: bool,
    /// For how many ms a watchdog renews a lease; `None`: for ever.
    pub watchdog_max: Option<i64>,
    /// Give every lock a fencing counter beside it.
    pub counts: bool,
    /// How long a turn of Redisson's is, us; `None`: it has none.
    pub redisson_yield_us: Option<i64>,
    /// For how many ms the place of a request is kept whose connection closes; `None`: it
    /// is not.
    pub keep_place: Option<i64>,
    /// Nothing is granted for so many ms more: the server has started, and may have lost
    /// locks.
    pub grants_in: Option<i64>,
    /// Beyond these a request is refused that would wait.
    pub most_waiters: Limits,
    /// Somebody can get keyspace events.
    pub emits_events: bool,
    /// It observes what others do to any key of which something is known.
    pub observes_all: bool,
}

/// How many requests may wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub in_all: usize,
    pub of_a_key: usize,
    /// Of a connection.
    pub of_a_client: usize,
}

impl Limits {
    pub const NONE: Self = Self {
        in_all: usize::MAX,
        of_a_key: usize::MAX,
        of_a_client: usize::MAX,
    };
}

impl Rules {
    /// Before anybody has set anything; without Redisson.
    pub const DEFAULT: Self = Self {
        detect_deadlocks: true,
        watchdog_max: None,
        counts: false,
        redisson_yield_us: None,
        keep_place: None,
        grants_in: None,
        most_waiters: Limits::NONE,
        emits_events: true,
        observes_all: true,
    };
}

impl Default for Rules {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// All locks of a server, as far as more than the keyspace is known of them.
#[derive(Clone, Debug, Default)]
pub struct Core {
    pub(in crate::lock) locks: Locks,
    /// What is to be looked at yet.
    pub(in crate::lock) heard: Heard,
    /// Locks with permits that are read in parts.
    pub(in crate::lock) pools: Pools,
    /// What is to be drained yet.
    pub(in crate::lock) due: Work,
    /// An empty one, for the next decision: to make one costs as much as to fill it.
    pub(in crate::lock) spare: Option<Box<Work>>,
    /// For the name of a lock, and of an owner.
    pub(in crate::lock) names: [Spare; 2],
    pub(in crate::lock) queues: Queues,
    /// Requests whose connections have closed: they leave before anything is decided.
    pub(in crate::lock) gone: Fifo<WaiterId>,
    /// Who is known to wait by subscription.
    pub(in crate::lock) subscribers: Subscribers,
    /// Grants whose reply may not have gone out yet.
    pub(in crate::lock) in_flight: InFlight,
    /// Keys whose slot is on its way.
    pub(in crate::lock) away: Away,
    pub(in crate::lock) watchdogs: Watchdogs,
    /// Very many holds of one owner that are lost: those that are to be told of yet.
    pub(in crate::lock) losses: Losses,
    /// What waits and holds are called by those who are told of them.
    pub(in crate::lock) sessions: Sessions,
    /// Who says that it is alive, and how long each may be silent.
    pub(in crate::lock) heartbeats: Heartbeats,
    pub(in crate::lock) tokens: Tokens,
    pub(in crate::lock) counters: Counters,
    /// Who may wait in a cycle.
    pub(in crate::lock) inquiry: Inquiry,
    pub rules: Rules,
}

impl Core {
    /// Whether anything is remembered of the key: a holder, a deadline or a queue.
    pub fn knows(&self, db: i32, name: &[u8]) -> bool {
        self.locks.contains(db, name) || self.has_turn(db, name)
    }

    /// Whether what others do to a key is to be observed: somebody waits for it or is to be
    /// notified of its end, or what becomes of it cannot be found out by a look alone. `all`:
    /// somebody gets events of ours, and so of all that is known.
    pub fn observes(&self, db: i32, name: &[u8], all: bool) -> bool {
        if all {
            return self.knows(db, name);
        }
        self.locks.hears(db, name) || self.has_turn(db, name)
    }

    /// `false`: there is no such key by this name, which is found out without a look for it.
    pub fn may_observe(&self, name: &[u8], all: bool) -> bool {
        all || self.locks.may_hear(name) || self.subscribers.have_places()
    }

    /// Whether there is any such key.
    pub fn observes_any(&self, all: bool) -> bool {
        let any = self.locks.hears_any() || self.subscribers.have_places() || self.any_unread();
        any || all && !self.locks.is_empty()
    }

    /// Whether any lock is known that several may hold.
    pub fn any_shared(&self) -> bool {
        self.locks.any_shared()
    }

    /// Nothing is remembered of any key.
    pub fn is_idle(&self) -> bool {
        self.locks.is_empty() && !self.any_ending() && self.subscribers.is_empty()
    }

    /// Asserts what each owner of state promises of itself.
    #[cfg(test)]
    pub fn check(&self) {
        self.locks.check();
        self.queues.check();
        self.watchdogs.check(&self.locks);
        self.subscribers.check();
        self.heard.check();
        self.heartbeats.check();
        self.in_flight.check(&self.queues);
        self.due.check(&self.queues);
        let waits = self.queues.iter();
        let waits = waits.filter_map(|(id, waiter)| Some((waiter.told_at()?, id)));
        let keys = self.locks.keys();
        let entries = keys.iter().filter_map(|key| self.locks.get(key));
        let ending = self.locks.ending().map(|(_, hold)| hold);
        let holds = entries.flat_map(|entry| entry.holds()).chain(ending);
        let watches = holds.filter_map(|hold| hold.watch.as_ref());
        let holds = watches.flat_map(|watch| watch.addresses());
        self.sessions
            .check(waits, holds.chain(self.losses.addresses()));
        if self.heard.is_any_new() {
            // Who waits is known of keys again when all of them are looked at.
            return;
        }
        for key in self.queues.keys() {
            assert!(self.locks.get(key).is_some_and(|entry| entry.waited_for));
        }
        for key in &keys {
            let waits = self.queues.line(key).first().is_some();
            let entry = self.locks.get(key);
            assert_eq!(
                entry.is_some_and(|entry| entry.waited_for),
                waits,
                "{key:?}"
            );
            let shared = self
                .locks
                .shared(key)
                .filter(|shared| shared.pool().is_some());
            for hold in shared.into_iter().flat_map(|shared| shared.holds()) {
                let waits = self.queues.first_of(&hold.owner, key).is_some();
                assert_eq!(hold.waits, waits, "{key:?}: {hold:?}");
            }
        }
    }

    /// Whether something that was heard, or that a request has left behind or is to leave
    /// behind outside a decision, is to be looked at.
    pub fn has_due(&self) -> bool {
        !self.heard.is_empty() || !self.due.is_empty() || !self.gone.is_empty()
    }

    /// Whether of some lock with permits not all who hold them are read.
    pub fn any_unread(&self) -> bool {
        self.pools.next().is_some()
    }

    /// Whether the owner is known to read under this lock.
    pub fn knows_reader(&self, db: i32, name: &[u8], owner: &[u8]) -> bool {
        self.locks.knows_reader(db, name, owner)
    }

    /// How many requests wait, over all locks.
    pub fn waiting(&self) -> usize {
        self.queues.len()
    }

    /// When the first lease can be found ended: one ms past its deadline, for a key
    /// lives through its last millisecond.
    pub fn next_expiry(&self) -> Option<WallMs> {
        let first = self.locks.first_deadline();
        first.map(|at| at.plus_ms(1))
    }

    /// Whether any hold is bound to a connection.
    pub fn is_watching(&self) -> bool {
        !self.watchdogs.is_empty()
    }

    /// Whether the lease of any is renewed.
    pub fn is_renewing(&self) -> bool {
        self.watchdogs.next_renewal().is_some()
    }

    /// Whether it matters if a connection closes, beside those that are blocked: holds or
    /// waits belong to one, or a grant is on its way.
    pub fn tracks_disconnects(&self) -> bool {
        let on_their_way = !self.in_flight.grants.is_empty();
        let named = !self.sessions.is_empty() || !self.heartbeats.is_empty();
        self.is_watching() || named || on_their_way
    }

    /// Whether the connection has waits, or holds that are bound to it.
    pub fn is_bound(&self, client: ClientId) -> bool {
        let blocked = self.queues.of_client(client).next().is_some();
        blocked || self.is_bound_beside_block(client)
    }

    /// The same but for a request for which it is blocked: of its end the server tells by
    /// itself.
    pub fn is_bound_beside_block(&self, client: ClientId) -> bool {
        let holds = self.watchdogs.has(client) || self.sessions.waiting(client) > 0;
        holds || self.heartbeats.has(client)
    }

    /// The requests of a connection that wait.
    pub(in crate::lock) fn waits_of(
        &self,
        client: ClientId,
    ) -> impl Iterator<Item = WaiterId> + use<'_> {
        let queued = self.sessions.waits_of(client);
        self.queues.of_client(client).chain(queued)
    }

    /// The address that a request has given.
    pub fn address(
        &self,
        client: ClientId,
        channel: &[u8],
        tag: &[u8],
        wants_hints: bool,
    ) -> Address {
        self.sessions.address(client, channel, tag, wants_hints)
    }

    /// Whether something is to follow yet for holders of locks that have ended.
    pub fn any_ending(&self) -> bool {
        self.locks.is_any_ending() || !self.losses.is_empty()
    }

    /// The same, of those whose end needs no write.
    pub fn any_ending_unwritten(&self) -> bool {
        let ends = self.locks.is_any_ending() && !self.locks.is_ending_written();
        ends || !self.losses.is_empty()
    }

    /// When the first lease ends or is to be renewed.
    pub fn next_end(&self) -> Option<WallMs> {
        let ends = [self.next_expiry(), self.watchdogs.next_renewal()];
        ends.into_iter().flatten().min()
    }

    /// Whether it is the turn of those who wait by subscription: the key is left free
    /// for them.
    pub fn has_turn(&self, db: i32, name: &[u8]) -> bool {
        self.subscribers.have_places() && self.subscribers.is_turn(&self.locks.key(db, name))
    }

    /// Whether anybody who waits by subscription has a place in a queue.
    pub fn has_places(&self) -> bool {
        self.subscribers.have_places()
    }

    /// Whether anything is known of those who wait for the lock by subscription.
    pub fn knows_subscribers(&self, key: &Key) -> bool {
        self.subscribers.knows(key)
    }

    /// When a turn, or a place, is to be looked at.
    pub fn next_turn(&self) -> Option<MonoUs> {
        self.subscribers.next_due()
    }

    /// When it is to be looked again who is silent: while a hold belongs to a connection, and some
    /// connection has said that it is alive.
    pub fn next_silence(&self) -> Option<MonoUs> {
        self.heartbeats.next().filter(|_| self.watchdogs.any())
    }

    /// When it is looked again whether somebody waits, for those who hold and want to know.
    pub fn next_hint(&self) -> Option<MonoUs> {
        self.watchdogs.hints.next()
    }

    /// When it is to be found out further who waits in a cycle.
    pub fn next_inquiry(&self) -> Option<MonoUs> {
        self.inquiry.due()
    }

    /// When the first BLOCK time is over.
    pub fn next_timeout(&self) -> Option<MonoUs> {
        self.queues.next_timeout()
    }

    /// The same, or when the first place is kept no more.
    pub fn next_over(&self) -> Option<MonoUs> {
        let both = [self.next_timeout(), self.queues.next_place_over()];
        both.into_iter().flatten().min()
    }

    /// A request for several keys has them, and its reply goes out a little later: its
    /// number until then.
    pub fn on_its_way(&mut self, names: &[&[u8]], ask: &Ask<'_>) -> WaiterId {
        let id = self.queues.number();
        let granted = |name: &&[u8]| {
            let key = self.locks.key(ask.db, name);
            let token = self.locks.hold(&key, ask.owner)?.token()?;
            Some((key, token))
        };
        let keys = names.iter().filter_map(granted).collect();
        let grant = Grant::new(keys, Want::of(ask));
        self.in_flight.grants.insert(id, grant);
        id
    }

    /// Counts how long those held whose holds are over.
    pub(in crate::lock) fn count_over(&mut self, now: Now) {
        for since in self.locks.take_over() {
            let held = now.wall.since(since);
            self.counters.holds.add(held, now.wall_ms());
        }
    }

    /// A request that is answered a little later, and has nothing to lose by that.
    pub fn number(&mut self) -> WaiterId {
        self.queues.number()
    }

    /// The reply of a grant is out: it stands.
    pub fn confirm(&mut self, id: WaiterId) {
        self.in_flight.grants.remove(&id);
    }
}
