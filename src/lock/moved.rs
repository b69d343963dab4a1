//! Keys that move, alone (RENAME, MOVE) or with their whole database (SWAPDB,
//! flushes). What is known of a hold goes with the key; a queue stays where its
//! clients asked, at (db, name), and is looked at again.

use super::{Bytes, Core, Hold, Key};

impl Core {
    /// The key was renamed or moved to another database: its hold goes with it,
    /// and what was known of the key it replaced is void. Both are due for a
    /// [`Core::review`].
    pub fn renamed(&mut self, from: &Key, to: &Key) {
        self.forget_holder(to);
        for grant in self.grants.values_mut().filter(|g| g.key == *from) {
            grant.key = to.clone();
        }
        let known = self.lift(from);
        self.tidy(from);
        self.lay(to, known);
    }

    /// Two databases were exchanged. All keys of both are due for a
    /// [`Core::review`].
    pub fn swapped(&mut self, one: i32, other: i32) {
        if one == other {
            return;
        }
        for grant in self.grants.values_mut() {
            grant.key.db = match grant.key.db {
                db if db == one => other,
                db if db == other => one,
                db => db,
            };
        }
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
            let aside = self.lift(&a);
            let there = self.lift(&b);
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
    /// soon as its new master writes. Waiters are sent away by the server.
    pub fn demoted(&mut self) {
        let keys = self.keys(None);
        for key in keys {
            self.forget_holder(&key);
        }
    }

    fn names(&self, db: i32) -> Vec<Bytes> {
        self.tables
            .get(&db)
            .map(|table| table.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Takes away what is known of a key's hold.
    fn lift(&mut self, key: &Key) -> (Option<Hold>, Option<i64>) {
        let Some(entry) = self.entry_mut(key) else {
            return (None, None);
        };
        let known = (
            entry.holder.take(),
            entry.deadline.filter(|_| !entry.foreign),
        );
        self.set_deadline(key, None);
        known
    }

    /// Puts what is known of a hold to a key.
    fn lay(&mut self, key: &Key, (holder, deadline): (Option<Hold>, Option<i64>)) {
        if holder.is_some() {
            self.entry_or_new(key).holder = holder;
        }
        self.set_deadline(key, deadline);
        self.tidy(key);
    }
}
