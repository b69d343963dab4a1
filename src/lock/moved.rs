//! Keys that move, alone (RENAME, MOVE) or with their whole database (SWAPDB,
//! flushes). What is known of a hold goes with the key; a queue stays where its
//! clients asked, at (db, name), and is looked at again.

use super::{Cause, Core, Effects, Key, Keyspace, Now};

impl Core {
    /// The key was renamed or moved to another database: its hold goes with it,
    /// and what was known of the key it replaced is void. Both are due for a
    /// [`Core::review`].
    pub fn renamed(&mut self, from: &Key, to: &Key) {
        self.forget_holders(to);
        let Some(entry) = self.entry_mut(from) else {
            return;
        };
        let holds = std::mem::take(&mut entry.holds);
        let deadline = entry.deadline;
        self.set_deadline(from, None);
        self.tidy(from);
        if !holds.is_empty() {
            self.entry_or_new(to).holds = holds;
        }
        self.set_deadline(to, deadline);
    }

    /// Two databases were exchanged.
    pub fn swapped<K: Keyspace>(
        &mut self,
        ks: &mut K,
        now: Now,
        (one, other): (i32, i32),
        out: &mut Effects,
    ) {
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
            self.review(ks, now, &a, Cause::Removed, out);
            self.review(ks, now, &b, Cause::Removed, out);
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
            self.forget_holders(&key);
        }
    }

    fn names(&self, db: i32) -> Vec<super::Bytes> {
        self.tables
            .get(&db)
            .map(|table| table.keys().cloned().collect())
            .unwrap_or_default()
    }

    fn lift(&mut self, key: &Key) -> (Vec<super::Hold>, Option<i64>) {
        let Some(entry) = self.entry_mut(key) else {
            return (Vec::new(), None);
        };
        let holds = std::mem::take(&mut entry.holds);
        let deadline = entry.deadline;
        self.set_deadline(key, None);
        (holds, deadline)
    }

    fn lay(&mut self, key: &Key, (holds, deadline): (Vec<super::Hold>, Option<i64>)) {
        if !holds.is_empty() {
            self.entry_or_new(key).holds = holds;
        }
        self.set_deadline(key, deadline);
        self.tidy(key);
    }
}
