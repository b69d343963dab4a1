//! The core: who holds a lock, who waits for it, and what follows from each
//! request. No server types, no unsafe code, no clock of its own.
//!
//! Data flows one way. A command is parsed into a request; the core looks at the
//! key through [`Keyspace`], decides, and answers with [`Effects`]; the shell in
//! `crate::server` carries them out and replies. The keyspace is the only truth
//! about who holds a lock. What the core remembers beside it (queues, deadlines,
//! tokens) is lost with a restart, and nothing depends on it for exclusion.
//!
//! Where to look: [`acquire`] and [`release`] for the commands, [`waiting`] for
//! the queue and for grants, [`expiry`] for what happens when a key ends or
//! changes under us, [`moved`] for RENAME, SWAPDB and flushes.

mod acquire;
mod deadlines;
mod describe;
mod effect;
mod entry;
mod expiry;
mod heard;
mod key;
mod keyspace;
#[cfg(test)]
mod memory;
mod moved;
mod refusal;
mod release;
#[cfg(test)]
mod tests;
mod time;
mod token;
mod waiting;

use std::collections::hash_map::Entry as HashEntry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use acquire::{Ask, Verdict, Wait};
pub use effect::{Effect, Effects, Event, Outcome, WaiterId};
pub use expiry::Cause;
pub use heard::Heard;
pub use key::{Bytes, Key};
pub use keyspace::{Foreign, Holder, Keyspace, Kind, Look, Mode};
pub use refusal::Refusal;
pub use time::Now;

use deadlines::Deadlines;
use entry::{Entry, Hold};
use token::Tokens;
use waiting::{Grant, Waiter};

/// All locks of a server, as far as more than the keyspace is known of them.
#[derive(Debug)]
pub struct Core {
    tables: BTreeMap<i32, HashMap<Bytes, Entry>>,
    waiters: HashMap<WaiterId, Waiter>,
    by_owner: HashMap<Bytes, BTreeSet<WaiterId>>,
    /// Grants whose reply may not have gone out yet.
    grants: HashMap<WaiterId, Grant>,
    leases: Deadlines<Key>,
    timeouts: Deadlines<WaiterId>,
    tokens: Tokens,
    last_waiter: WaiterId,
}

impl Core {
    pub fn new() -> Self {
        Self {
            tables: BTreeMap::new(),
            waiters: HashMap::new(),
            by_owner: HashMap::new(),
            grants: HashMap::new(),
            leases: Deadlines::new(Key::new(0, b"")),
            timeouts: Deadlines::new(0),
            tokens: Tokens::default(),
            last_waiter: 0,
        }
    }

    /// Whether anything is remembered of the key: a holder, a deadline or a queue.
    pub fn knows(&self, db: i32, name: &[u8]) -> bool {
        self.tables.get(&db).is_some_and(|t| t.contains_key(name))
    }

    /// Nothing is remembered of any key.
    pub fn is_idle(&self) -> bool {
        self.tables.values().all(HashMap::is_empty)
    }

    /// How many requests wait, over all locks.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// The wall-clock ms at which the first lease can be found ended: one past
    /// its deadline, for a key lives through its last millisecond.
    pub fn next_expiry(&self) -> Option<i64> {
        self.leases.first().map(|at| at.saturating_add(1))
    }

    /// The monotonic us at which the first BLOCK time is over.
    pub fn next_timeout(&self) -> Option<i64> {
        self.timeouts.first()
    }

    /// The key's name, shared with the table's own copy if there is one.
    fn key(&self, db: i32, name: &[u8]) -> Key {
        let known = self.tables.get(&db).and_then(|t| t.get_key_value(name));
        match known {
            Some((name, _)) => Key {
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
        self.tables
            .entry(key.db)
            .or_default()
            .entry(key.name.clone())
            .or_default()
    }

    /// Forgets the key if nothing of it is worth remembering.
    fn tidy(&mut self, key: &Key) {
        if let Some(table) = self.tables.get_mut(&key.db) {
            if table.get(&key.name).is_some_and(Entry::is_idle) {
                table.remove(&key.name);
                give_back(table);
            }
        }
    }

    /// Puts the key under another moment of the index of leases.
    fn set_deadline(&mut self, key: &Key, to: Option<i64>) {
        let from = self.entry(key).and_then(|entry| entry.deadline);
        if from != to {
            let entry = self.entry_or_new(key);
            entry.deadline = to;
            entry.foreign = false;
            self.leases.change(key, from, to);
        }
    }

    /// Records the one owner of a plain lock, and until when it is its.
    fn set_holder(&mut self, key: &Key, owner: Bytes, token: i64, at: Option<i64>, now: Now) {
        let entry = self.entry_or_new(key);
        entry.holder = Some(Hold {
            owner,
            token,
            since_us: now.wall_us,
        });
        entry.foreign = false;
        let from = std::mem::replace(&mut entry.deadline, at);
        self.leases.change(key, from, at);
    }

    /// Forgets who held the key and until when. Its waiters stay; whether there
    /// are any.
    fn forget_holder(&mut self, key: &Key) -> bool {
        let table = self.tables.get_mut(&key.db);
        let Some(HashEntry::Occupied(mut slot)) = table.map(|t| t.entry(key.name.clone())) else {
            return false;
        };
        let entry = slot.get_mut();
        entry.holder = None;
        entry.foreign = false;
        let from = entry.deadline.take();
        let waited_for = !entry.queue.is_empty();
        if entry.is_idle() {
            slot.remove();
            self.tables.get_mut(&key.db).map(give_back);
        }
        self.leases.change(key, from, None);
        waited_for
    }
}

/// Gives memory back after a crowd of locks has gone; seldom enough to cost nothing.
fn give_back(table: &mut HashMap<Bytes, Entry>) {
    const ROOM: usize = 1024;
    if table.capacity() > ROOM && table.len() < table.capacity() / 8 {
        table.shrink_to(table.len().saturating_mul(2).max(ROOM / 2));
    }
}
