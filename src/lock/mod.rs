//! The core: who holds a lock, who waits for it, and what follows from each
//! request. No server types, no unsafe code, no clock of its own.
//!
//! Data flows one way. A command is parsed into a request; the core looks at the
//! key through [`Keyspace`], decides, and answers with [`Effects`]; the shell in
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
//! happens when a key ends or changes under us, [`heard`] for how that is heard of,
//! [`moved`] for RENAME, SWAPDB and flushes, [`away`] for a cluster's slots that move.

mod acquire;
mod away;
mod bonds;
mod deadlines;
mod deadlock;
mod decision;
mod describe;
mod effect;
mod entry;
mod expiry;
mod grants;
mod heard;
mod judge;
mod key;
mod keyspace;
mod lapse;
mod later;
mod lengths;
mod many;
#[cfg(test)]
mod memory;
mod moved;
mod names;
mod queue;
mod rank;
mod readers;
mod refusal;
mod release;
mod renewals;
mod requests;
mod shared;
mod sight;
mod stats;

mod table;
#[cfg(test)]
mod tests;
mod time;
mod token;
mod turns;
mod waiting;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use acquire::{acquire, Ask, Verdict, Wait};
pub use bonds::Bond;
pub use decision::Decision;
pub use describe::{Contended, Waiting};
pub use effect::{Effect, Effects, Event, Outcome, WaiterId, Whom};
pub use expiry::{expire, forsake, Cause};
pub use heard::{hear, review, Note};
pub use key::{Bytes, Key};
pub use keyspace::{
    leases_looked_at, Foreign, Holder, Keyspace, Kind, Lease, Look, Mode, MOST_READS,
};
pub use lapse::let_lapse;
pub use many::{acquire_many, release_many, renew_many, MOST_KEYS};
pub use queue::time_out;
pub use refusal::{Link, Refusal};
pub use release::{force, release, renew, Ended, Renewal};
pub use renewals::renew_watched;
pub use stats::Stats;
pub use time::Now;
pub use token::Counter;
pub use turns::{subscribed, Listening};

use acquire::Want;
use away::Away;
use deadlines::Deadlines;
use entry::{Entry, Hold};
use grants::Grant;
use heard::Heard;
use lapse::Lapsed;
use later::Later;
use lengths::Lengths;
use queue::Waiter;
use rank::Rank;
use requests::Requests;
use stats::Counters;
use table::Table;
use token::Tokens;
use turns::Subscribers;

/// What the operator has set.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Refuse a request that would close a circle of waiting.
    pub detect_deadlocks: bool,
    /// For how many ms a watchdog renews a lease; 0: for ever.
    pub watchdog_max: i64,
    /// Give every lock a fencing counter beside it.
    pub counts: bool,
    /// How long a turn of Redisson's is, us; 0: it has none.
    pub redisson_turn_us: i64,
}

impl Rules {
    /// Before anybody has set anything; without Redisson.
    pub const DEFAULT: Self = Self {
        detect_deadlocks: true,
        watchdog_max: 0,
        counts: false,
        redisson_turn_us: 0,
    };
}

/// All locks of a server, as far as more than the keyspace is known of them.
#[derive(Clone, Debug)]
pub struct Core {
    tables: BTreeMap<i32, Table>,
    /// Of the names of the read/write locks in them.
    lengths: Lengths,
    /// What is to be looked at yet.
    heard: Heard,
    /// What is to be settled yet.
    later: Later,
    waiters: HashMap<WaiterId, Waiter>,
    by_owner: HashMap<Bytes, Requests>,
    by_client: HashMap<u64, WaiterId>,
    /// The keys that somebody waits for.
    waited_for: BTreeSet<Key>,
    /// Who is known to wait by subscription.
    subscribers: HashMap<Key, Subscribers>,
    /// At so many of them, those are forgotten that have no place.
    subscribers_most: usize,
    /// When their turns are to be looked at, monotonic us.
    turn_looks: Deadlines<Key>,
    /// Grants whose reply may not have gone out yet.
    grants: HashMap<WaiterId, Grant>,
    /// Keys whose queue is to be looked at before the decision under way is over.
    pending: BTreeSet<Key>,
    /// Requests for keys that their owners have come to hold in it, in order.
    nesting: BTreeSet<(Rank, WaiterId, Key)>,
    /// Those owners: one may be a reader now that waits to write,
    risen: BTreeSet<(Key, Bytes)>,
    /// and its requests may be part of a circle.
    suspects: BTreeSet<Bytes>,
    /// Keys that were left free in it, and who is to be woken if they stay so.
    left: BTreeMap<Key, Whom>,
    /// Keys on which something was written anew that had run out, and when by the
    /// wall clock: what was heard of them by then is older.
    revived: (i64, BTreeSet<Key>),
    /// Keys whose slot is on its way.
    away: Away,
    timeouts: Deadlines<WaiterId>,
    renewals: Deadlines<Bond>,
    lapsed: Lapsed,
    /// The connections that have watchdog holds.
    bonds: BTreeMap<u64, BTreeSet<Bond>>,
    /// The connection that need not be told that its hold is lost: it does that.
    spared: u64,
    tokens: Tokens,
    last_waiter: WaiterId,
    counters: Counters,
    pub rules: Rules,
}

impl Core {
    pub fn new() -> Self {
        let nowhere = Key::new(0, b"");
        Self {
            tables: BTreeMap::new(),
            heard: Heard::default(),
            later: Later::default(),
            lengths: Lengths::default(),
            waiters: HashMap::new(),
            by_owner: HashMap::new(),
            by_client: HashMap::new(),
            waited_for: BTreeSet::new(),
            subscribers: HashMap::new(),
            subscribers_most: turns::MOST_IN_VAIN,
            turn_looks: Deadlines::new(nowhere.clone()),
            grants: HashMap::new(),
            pending: BTreeSet::new(),
            nesting: BTreeSet::new(),
            risen: BTreeSet::new(),
            suspects: BTreeSet::new(),
            left: BTreeMap::new(),
            revived: (0, BTreeSet::new()),
            away: Away::default(),
            timeouts: Deadlines::new(0),
            renewals: Deadlines::new((nowhere, Bytes::from(&b""[..]))),
            lapsed: Lapsed::default(),
            bonds: BTreeMap::new(),
            spared: 0,
            tokens: Tokens::default(),
            last_waiter: 0,
            counters: Counters::default(),
            rules: Rules::DEFAULT,
        }
    }

    /// Makes a decision: looks at the keyspace, writes to it, and leaves what others
    /// are to be told.
    pub fn decide<T>(
        &mut self,
        ks: &mut dyn Keyspace,
        now: Now,
        out: &mut Effects,
        run: impl FnOnce(&mut Decision<'_>) -> T,
    ) -> T {
        let core = self;
        run(&mut Decision { core, ks, now, out })
    }

    /// Whether anything is remembered of the key: a holder, a deadline or a queue.
    pub fn knows(&self, db: i32, name: &[u8]) -> bool {
        self.tables.get(&db).is_some_and(|t| t.contains(name)) || self.has_turn(db, name)
    }

    /// Nothing is remembered of any key.
    pub fn is_idle(&self) -> bool {
        self.tables.values().all(Table::is_empty) && self.subscribers.is_empty()
    }

    /// How many requests wait, over all locks.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// The wall-clock ms at which the first lease can be found ended: one past
    /// its deadline, for a key lives through its last millisecond.
    pub fn next_expiry(&self) -> Option<i64> {
        let firsts = self.tables.values().filter_map(Table::first_deadline);
        firsts.min().map(|at| at.saturating_add(1))
    }

    /// The monotonic us at which the first BLOCK time is over.
    pub fn next_timeout(&self) -> Option<i64> {
        self.timeouts.first()
    }

    /// The key's name, shared with the table's own copy if there is one.
    fn key(&self, db: i32, name: &[u8]) -> Key {
        let known = self.tables.get(&db).and_then(|t| t.name(name));
        match known {
            Some(name) => Key {
                db,
                name: name.clone(),
            },
            None => Key::new(db, name),
        }
    }

    fn entry(&self, key: &Key) -> Option<&Entry> {
        self.tables.get(&key.db).and_then(|t| t.get(&key.name))
    }

    fn entry_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.tables
            .get_mut(&key.db)
            .and_then(|t| t.get_mut(&key.name))
    }

    fn entry_or_new(&mut self, key: &Key) -> &mut Entry {
        let table = self.tables.entry(key.db).or_default();
        table.get_or_new(&key.name, self.heard.stamp())
    }

    /// Forgets the key if nothing of it is worth remembering.
    fn tidy(&mut self, key: &Key) {
        if let Some(table) = self.tables.get_mut(&key.db) {
            table.tidy(&key.name);
        }
    }

    /// Puts the key under another moment of the index of leases.
    fn set_deadline(&mut self, key: &Key, to: Option<i64>) {
        let from = self.entry(key).and_then(|entry| entry.deadline);
        if from != to {
            self.entry_or_new(key).foreign = false;
            self.put_deadline(key, to);
        }
    }

    fn put_deadline(&mut self, key: &Key, to: Option<i64>) {
        if let Some(table) = self.tables.get_mut(&key.db) {
            table.set_deadline(&key.name, to);
        }
    }

    /// Records the one owner of a plain lock, and until when it is its.
    fn set_holder(&mut self, key: &Key, want: &Want, token: i64, at: Option<i64>, now: Now) {
        let entry = self.entry_or_new(key);
        entry.plain = Some(Hold {
            token: Some(token),
            since_us: Some(now.wall_us),
            client: want.client,
            ..Hold::found(want.owner.clone())
        });
        entry.foreign = false;
        self.put_deadline(key, at);
    }

    /// Forgets who held the key and until when. Its waiters stay. What was known of
    /// the holders.
    fn forget_holders(&mut self, key: &Key) -> Vec<Hold> {
        let table = self.tables.get_mut(&key.db);
        let holders = table.and_then(|table| {
            table.change(&key.name, |entry| {
                entry.foreign = false;
                (entry.plain.take(), entry.shared.take())
            })
        });
        let (plain, shared) = holders.unwrap_or_default();
        self.lengths.change(key.name.len(), shared.is_some(), false);
        match (plain, shared) {
            // Nothing to give back of a lock that nobody watched.
            (Some(hold), None) if hold.watch.is_none() => Vec::new(),
            (plain, None) => plain.into_iter().collect(),
            (plain, Some(shared)) => {
                let parties = shared.parties().map(|party| party.hold.clone());
                plain.into_iter().chain(parties).collect()
            }
        }
    }
}
