//! Keys that move, alone (RENAME, MOVE) or with their whole database (SWAPDB,
//! flushes). What is known of a hold goes with the key; a queue stays where its
//! clients asked, at (db, name), and is looked at again. A watchdog does not
//! follow: its connection is closed, for it would renew another name.

use super::entry::Shared;
use super::{Bytes, Core, Hold, Key, Keyspace, Lease, Step};

/// What is known of a key's holders.
type Known = (Option<Hold>, Option<Box<Shared>>, Option<i64>);

impl Core {
    /// The key was renamed or moved to another database: its hold goes with it,
    /// and what was known of the key it replaced is void. The leases of readers do
    /// not move. Both are due for a [`Core::review`].
    pub(super) fn renamed<K: Keyspace>(&mut self, step: &mut Step<'_, K>, from: &Key, to: &Key) {
        self.forsake(step, to);
        self.grants_move(|key| if key == from { to.clone() } else { key.clone() });
        let (plain, shared, deadline) = self.lift(step, from);
        self.tidy(from);
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
        self.lay(to, (plain, shared, deadline));
    }

    /// Two databases were exchanged. All keys of both are due for a
    /// [`Core::review`].
    pub(super) fn swapped<K: Keyspace>(&mut self, step: &mut Step<'_, K>, one: i32, other: i32) {
        if one == other {
            return;
        }
        self.grants_move(|key| Key {
            db: match key.db {
                db if db == one => other,
                db if db == other => one,
                db => db,
            },
            name: key.name.clone(),
        });
        let mut names = self.names(one);
        names.extend(self.names(other));
        names.sort();
        names.dedup();
        for name in names {
            let a = Key {
                db: one,
                name: name.clone(),
            };
            let b = Key { db: other, name };
            let aside = self.lift(step, &a);
            let there = self.lift(step, &b);
            self.lay(&a, there);
            self.lay(&b, aside);
        }
    }

    /// All keys of a database of which anything is known, or of all databases:
    /// each is due for a [`Core::review`] when the database was emptied.
    pub fn keys(&self, db: Option<i32>) -> Vec<Key> {
        self.tables
            .iter()
            .filter(|(number, _)| db.is_none_or(|db| db == **number))
            .flat_map(|(number, table)| table.keys().map(|name| (*number, name.clone())))
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
        self.unsettled.clear();
        clients
    }

    fn grants_move(&mut self, to: impl Fn(&Key) -> Key) {
        for grant in self.grants.values_mut() {
            for (key, _) in &mut grant.keys {
                *key = to(key);
            }
        }
    }

    fn names(&self, db: i32) -> Vec<Bytes> {
        self.tables
            .get(&db)
            .map(|table| table.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Takes away what is known of a key's holders.
    fn lift<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key) -> Known {
        let Some(entry) = self.entry_mut(key) else {
            return (None, None, None);
        };
        let deadline = entry.deadline.filter(|_| !entry.foreign);
        let mut plain = entry.plain.take();
        let mut shared = self.put_shared(key, None);
        self.set_deadline(key, None);
        let parties = shared.iter().flat_map(|shared| shared.parties());
        let holds: Vec<Hold> = parties
            .map(|party| &party.hold)
            .chain(&plain)
            .filter(|hold| hold.watch.is_some())
            .cloned()
            .collect();
        for hold in holds {
            self.lost(step, key, &hold);
            if let Some(shared) = &mut shared {
                if let Some(watch) = shared.hold_mut(&hold.owner).and_then(|h| h.watch.as_mut()) {
                    watch.rest();
                }
            }
        }
        if let Some(watch) = plain.as_mut().and_then(|hold| hold.watch.as_mut()) {
            watch.rest();
        }
        (plain, shared, deadline)
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
