//! The core: who holds a lock, who waits for it, and what follows from each
//! request. No server types, no unsafe code, no clock of its own.
//!
//! Data flows one way. A command is parsed into a request; the core looks at the
//! key through [`Keyspace`], decides, and answers with [`Notices`]; the shell in
//! `crate::server` carries them out and replies. The keyspace is the only truth
//! about who holds a lock. What the core remembers beside it (queues, deadlines,
//! tokens) is lost with a restart, and nothing depends on it for exclusion.
//!
//! Where to look: [`acquire`] and [`release`] for the commands on one key, [`many`]
//! for those on several; [`shared`] and [`readers`] for read/write locks; [`queue`]
//! for who waits and where, [`waiting`] for how a lock goes to the next, [`judge`]
//! for the other requests of an owner that got one, [`grants`] for replies that may
//! be lost; [`deadlock`] for who waits for whom; [`watch`] and [`bonds`] for holds
//! that belong to a connection, [`lapse`] for those that run out behind the gate; [`turns`] for those who wait by subscription;
//! [`sight`] for what was known of a key against what it is, [`expiry`] for what
//! happens when a key ends or changes under us, [`notes`] for how that is heard of,
//! [`moved`] for RENAME, SWAPDB and flushes, [`away`] for a cluster's slots that move;
//! [`ask`] for what requests say, [`types`] for moments, numbers and names that must not
//! be mixed; [`run`] for what is due without a request, and in which order.

mod ask;
mod away;
mod closed;
mod deadlines;
mod deadlock;
mod decide;
mod decision;
mod describe;
mod found;
mod freed;
mod grant;
mod head;
mod heard;
mod in_flight;
mod key;
mod keyspace;
pub mod layout;
mod leases;
mod leaving;
#[cfg(test)]
mod memory;
mod modes;
mod moved;
mod notes;
mod notice;
mod queue;
mod ready;
mod reconcile;
mod refusal;
mod renewals;
mod request;
mod run;
mod stats;
mod subscribers;

mod table;
mod take_back;
#[cfg(test)]
mod tests;
mod timeouts;
mod tokens;
mod types;
mod waiting;
mod watchdog;
mod work;
mod write;

pub use ask::{Ask, Ended, Renewal, Verdict, Wait};
pub use decide::Decider;
pub use decision::Decision;
pub use describe::{Contended, Waiting};
pub use found::{
    leases_looked_at, Counter, Foreign, Holder, Kind, Lease, Look, Mode, Slot, MOST_READS,
};
pub use heard::Note;
use key::Bytes;
pub use key::Key;
pub use keyspace::Keyspace;
pub use notice::{Event, Notice, Notices, Outcome, Whom};
pub use reconcile::Cause;
pub use refusal::{Link, Refusal};
pub use request::{
    acquire, acquire_many, force, release, release_many, renew, renew_many, MOST_KEYS,
};
pub use run::{attend, run, Gate, Occasion, Outside};
pub use stats::Stats;
pub use subscribers::Listening;
pub use types::{ClientId, MonoUs, Now, Owner, Token, WaiterId, WallMs, WallUs};
pub use watchdog::ROUND_MS;
pub use write::Write;

use away::Away;
use heard::Heard;
use in_flight::{Grant, InFlight};
use queue::Queues;
use stats::Counters;
use subscribers::Subscribers;
use table::Locks;
use tokens::Tokens;
use watchdog::Watchdogs;
use work::Work;

/// What the operator has set.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Refuse a request that would close a circle of waiting.
    pub detect_deadlocks: bool,
    /// For how many ms a watchdog renews a lease; `None`: for ever.
    pub watchdog_max: Option<i64>,
    /// Give every lock a fencing counter beside it.
    pub counts: bool,
    /// How long a turn of Redisson's is, us; `None`: it has none.
    pub redisson_turn_us: Option<i64>,
}

impl Rules {
    /// Before anybody has set anything; without Redisson.
    pub const DEFAULT: Self = Self {
        detect_deadlocks: true,
        watchdog_max: None,
        counts: false,
        redisson_turn_us: None,
    };
}

/// All locks of a server, as far as more than the keyspace is known of them.
#[derive(Clone, Debug)]
pub struct Core {
    locks: Locks,
    /// What is to be looked at yet.
    heard: Heard,
    /// What is to be settled yet.
    due: Work,
    queues: Queues,
    /// Who is known to wait by subscription.
    subscribers: Subscribers,
    /// Grants whose reply may not have gone out yet.
    in_flight: InFlight,
    /// Keys whose slot is on its way.
    away: Away,
    watchdogs: Watchdogs,
    tokens: Tokens,
    counters: Counters,
    pub rules: Rules,
}

impl Core {
    pub fn new() -> Self {
        Self {
            locks: Locks::default(),
            heard: Heard::default(),
            due: Work::default(),
            queues: Queues::default(),
            subscribers: Subscribers::default(),
            in_flight: InFlight::default(),
            away: Away::default(),
            watchdogs: Watchdogs::default(),
            tokens: Tokens::default(),
            counters: Counters::default(),
            rules: Rules::DEFAULT,
        }
    }

    /// Whether anything is remembered of the key: a holder, a deadline or a queue.
    pub fn knows(&self, db: i32, name: &[u8]) -> bool {
        self.locks.knows(db, name) || self.has_turn(db, name)
    }

    /// Nothing is remembered of any key.
    pub fn is_idle(&self) -> bool {
        self.locks.is_empty() && self.subscribers.is_empty()
    }

    /// Asserts what each owner of state promises of itself.
    #[cfg(test)]
    pub fn check(&self) {
        self.locks.check();
        self.queues.check();
        self.watchdogs.check(&self.locks);
        self.subscribers.check();
        for key in self.queues.keys() {
            assert!(self
                .locks
                .get(key)
                .is_some_and(|entry| entry.is_waited_for()));
        }
    }

    /// Whether something that was heard, or that a request has left behind outside a
    /// decision, is to be looked at.
    pub fn is_unsettled(&self) -> bool {
        !self.heard.is_empty() || !self.due.is_empty()
    }

    /// Whether any key is to be looked at again in a while.
    pub fn is_any_away(&self) -> bool {
        !self.away.is_empty()
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

    /// Whether any hold belongs to a connection.
    pub fn is_watching(&self) -> bool {
        !self.watchdogs.is_empty()
    }

    /// Whether the connection has watchdog holds.
    pub fn is_bound(&self, client: ClientId) -> bool {
        self.watchdogs.has(client)
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

    /// When the first BLOCK time is over.
    pub fn next_timeout(&self) -> Option<MonoUs> {
        self.queues.next_timeout()
    }

    /// A request for several keys has them, and its reply goes out a little later: its
    /// number until then.
    pub fn on_its_way(&mut self, names: &[&[u8]], ask: &Ask<'_>) -> WaiterId {
        let id = self.queues.number();
        let keys = names.iter().map(|name| self.locks.key(ask.db, name));
        let hold = |key: &Key| self.locks.get(key)?.hold(ask.owner)?.token;
        let keys = keys.filter_map(|key| Some((hold(&key)?, key)));
        let grant = Grant {
            keys: keys.map(|(token, key)| (key, token)).collect(),
            owner: Owner::from(ask.owner),
            mode: ask.mode,
            client: ask.client,
            watched: ask.watch,
        };
        self.in_flight.insert(id, grant);
        id
    }

    /// A request that is answered a little later, and has nothing to lose by that.
    pub fn number(&mut self) -> WaiterId {
        self.queues.number()
    }

    /// The reply of a grant is out: it stands.
    pub fn confirm(&mut self, id: WaiterId) {
        self.in_flight.remove(id);
    }
}
