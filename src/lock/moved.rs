//! Keys that move, alone (RENAME, MOVE) or with their whole database (SWAPDB,
//! flushes). What is known of a hold goes with the key; a queue stays where its
//! clients asked, at (db, name), and is looked at again. A watchdog does not
//! follow: its connection is closed, for it would renew another name.

use super::entry::{Entry, Shared};
use super::{bonds, expiry};
use super::{Bytes, Core, Decision, Hold, Key, Lease};

/// What is known of a key's holders.
type Known = (Option<Hold>, Option<Box<Shared>>, Option<i64>);

impl Core {
    /// All keys of a database of which anything is known, or of all databases:
    /// each is due for a [`Core::review`] when the database was emptied.
    pub fn keys(&self, db: Option<i32>) -> Vec<Key> {
        self.tables
            .iter()
            .filter(|(number, _)| db.is_none_or(|db| db == **number))
            .flat_map(|(number, table)| table.names().map(|name| (*number, name.clone())))
            .map(|(db, name)| Key { db, name })
            .collect()
    }

    /// The server is no master any more: what it knew of holds is out of date as
    /// soon as its new master writes. Waiters are sent away by the server. The
    /// connections that have lost watchdog holds by it.
    pub fn demoted(&mut self) -> Vec<u64> {
        let clients = self.bonds.keys().copied().collect();
        for key in self.keys(None) {
            for hold in self.forget_holders(&key) {
                self.unwatch(&key, &hold);
            }
        }
        // The server sends the waiters away; what they were granted is void.
        self.grants.clear();
        self.forget_turns();
        self.nesting.clear();
        self.risen.clear();
        self.suspects.clear();
        self.left.clear();
        self.pending.clear();
        self.heard.clear();
        self.later = Default::default();
        self.away = Default::default();
        clients
    }

    fn grants_move(&mut self, to: impl Fn(&Key) -> Key) {
        for grant in self.grants.values_mut() {
            for (key, _) in &mut grant.keys {
                *key = to(key);
            }
        }
    }

    /// Puts what is known of holders to a key.
    fn lay(&mut self, key: &Key, (plain, shared, deadline): Known) {
        if plain.is_some() || shared.is_some() {
            let entry = self.entry_or_new(key);
            entry.plain = plain;
            self.put_shared(key, shared);
        }
        self.set_deadline(key, deadline);
        self.tidy(key);
    }
}

/// The key was renamed or moved to another database: its hold goes with it,
/// and what was known of the key it replaced is void. The leases of readers do
/// not move. Both are due for a [`Core::review`].
pub fn renamed(d: &mut Decision<'_>, from: &Key, to: &Key) {
    expiry::forsake(d, to);
    d.core
        .grants_move(|key| if key == from { to.clone() } else { key.clone() });
    let (plain, shared, deadline) = lift(d, from);
    d.core.tidy(from);
    let was_shared = shared.is_some();
    let shared = shared.and_then(|shared| {
        let mut moved = Shared::default();
        moved.expires = shared.expires;
        for mut party in shared.parties().cloned() {
            party.reads = false;
            party.lease = Lease::Gone;
            party.holds = 0;
            if party.writes {
                moved.put(party);
            }
        }
        (!moved.is_empty()).then(|| Box::new(moved))
    });
    let deadline = match &shared {
        Some(shared) => shared.first_end(),
        None => deadline.filter(|_| !was_shared),
    };
    d.core.lay(to, (plain, shared, deadline));
}

/// Two databases were exchanged. All keys of both are due for a
/// [`Core::review`].
pub fn swapped(d: &mut Decision<'_>, one: i32, other: i32) {
    if one == other {
        return;
    }
    d.core.grants_move(|key| Key {
        db: match key.db {
            db if db == one => other,
            db if db == other => one,
            db => db,
        },
        name: key.name.clone(),
    });
    let is_theirs = |key: &Key| key.db == one || key.db == other;
    bonds::lost_on(d, is_theirs);
    let waited_for = d.core.waited_for.iter().filter(|key| is_theirs(key));
    let waited_for: Vec<Key> = waited_for.cloned().collect();
    let lines: Vec<_> = waited_for
        .iter()
        .map(|key| d.core.entry_mut(key).and_then(Entry::take_line))
        .collect();
    let (a, b) = (d.core.tables.remove(&one), d.core.tables.remove(&other));
    d.core.tables.extend(a.map(|table| (other, table)));
    d.core.tables.extend(b.map(|table| (one, table)));
    for (key, line) in waited_for.iter().zip(lines) {
        d.core.entry_or_new(key).put_line(line);
        // What took the other's place may be nothing.
        let moved = Key {
            db: if key.db == one { other } else { one },
            name: key.name.clone(),
        };
        d.core.tidy(&moved);
    }
}

/// A watched hold moves: who watched it has lost it.
fn let_rest(d: &mut Decision<'_>, key: &Key, owner: &Bytes) {
    let Some(hold) = d
        .core
        .entry(key)
        .and_then(|entry| entry.hold(owner))
        .cloned()
    else {
        return;
    };
    bonds::lost(d, key, &hold);
    let hold = d
        .core
        .entry_mut(key)
        .and_then(|entry| entry.hold_mut(owner));
    if let Some(watch) = hold.and_then(|hold| hold.watch.as_mut()) {
        watch.rest();
    }
}

/// Takes away what is known of a key's holders.
fn lift(d: &mut Decision<'_>, key: &Key) -> Known {
    let Some(entry) = d.core.entry_mut(key) else {
        return (None, None, None);
    };
    let deadline = entry.deadline.filter(|_| !entry.foreign);
    let shared = entry.shared.iter().flat_map(|shared| shared.parties());
    let holds = shared.map(|party| &party.hold).chain(&entry.plain);
    let watched = holds.filter(|hold| hold.watch.is_some());
    let watched: Vec<Bytes> = watched.map(|hold| hold.owner.clone()).collect();
    for owner in watched {
        let_rest(d, key, &owner);
    }
    let Some(entry) = d.core.entry_mut(key) else {
        return (None, None, None);
    };
    let plain = entry.plain.take();
    let shared = d.core.put_shared(key, None);
    d.core.set_deadline(key, None);
    (plain, shared, deadline)
}
