//! What others do to keys, and what the server then tells the shell: only events
//! of the classes generic, expired and evicted, and only of keys that it knows.

use std::collections::BTreeMap;

use super::shell::Shell;
use crate::lock::key::exchanged;
use crate::lock::memory::Value;
use crate::lock::{Cause, Key, Note};

impl Shell {
    /// DEL, UNLINK.
    pub fn del(&mut self, key: &Key) {
        self.touch(key);
        if self.ks.keys.remove(key).is_some() {
            self.changed(key, Cause::Removed);
        }
    }

    /// The server has no memory left.
    pub fn evict(&mut self, key: &Key) {
        self.touch(key);
        if self.ks.keys.remove(key).is_some() {
            self.changed(key, Cause::Evicted);
        }
    }

    /// PEXPIRE, or PERSIST.
    pub fn pexpire(&mut self, key: &Key, ms: Option<i64>) {
        self.touch(key);
        let at = ms.map(|ms| self.ks.now_ms.plus_ms(ms));
        if let Some((_, ends)) = self.ks.keys.get_mut(key) {
            let silent = at.is_none() && ends.is_none();
            *ends = at;
            if !silent {
                self.changed(key, Cause::Unknown);
            }
        }
    }

    /// SET key text, or SET key text PX ms. Only the TTL gives an event that the
    /// shell listens to.
    pub fn set(&mut self, key: &Key, ms: Option<i64>) {
        self.touch(key);
        let at = ms.map(|ms| self.ks.now_ms.plus_ms(ms));
        self.ks.keys.insert(key.clone(), (Value::Text, at));
        if at.is_some() {
            self.changed(key, Cause::Unknown);
        }
    }

    /// RENAME, or MOVE when the databases differ.
    pub fn rename(&mut self, from: &Key, to: &Key) {
        self.touch(from);
        self.touch(to);
        if let Some(value) = self.ks.keys.remove(from) {
            self.ks.keys.insert(to.clone(), value);
            self.renamed(from, to);
        }
    }

    /// A script takes the lock if it finds it free, as Redisson's does.
    pub fn script_takes(&mut self, key: &Key, owner: &str, ms: i64) {
        self.touch(key);
        if !self.ks.keys.contains_key(key) {
            let fields = BTreeMap::from([(owner.as_bytes().to_vec(), b"1".to_vec())]);
            let at = self.ks.now_ms.plus_ms(ms);
            self.ks
                .keys
                .insert(key.clone(), (Value::Hash(fields), Some(at)));
            self.changed(key, Cause::Unknown);
        }
    }

    /// A lease key of a reader changed.
    pub fn reader_changed(&mut self, key: &Key, owner: &str, cause: Cause) {
        if self.core.knows_reader(key.db, &key.name, owner.as_bytes()) {
            self.notes
                .push(Note::Reader(key.clone(), owner.as_bytes().into(), cause));
        }
    }

    /// FLUSHDB, or FLUSHALL.
    pub fn flush(&mut self, db: Option<i32>) {
        self.ks
            .keys
            .retain(|key, _| db.is_some_and(|db| db != key.db));
        self.replaced(db);
    }

    /// SWAPDB.
    pub fn swap(&mut self, one: i32, other: i32) {
        let swapped = |db| exchanged(db, one, other);
        self.ks.keys = std::mem::take(&mut self.ks.keys)
            .into_iter()
            .map(|(key, value)| {
                (
                    Key {
                        db: swapped(key.db),
                        ..key
                    },
                    value,
                )
            })
            .collect();
        self.swapped(one, other);
    }

    /// The server's own expiry cycle comes by.
    pub fn expire_cycle(&mut self) {
        let keys: Vec<Key> = self.ks.keys.keys().cloned().collect();
        for key in keys {
            self.touch(&key);
        }
    }

    /// A command that looks at a key which has run out removes it first.
    pub fn touch(&mut self, key: &Key) {
        let now = self.ks.now_ms;
        let ends = self.ks.keys.get(key).and_then(|(_, ends)| *ends);
        if ends.is_some_and(|at| now > at) {
            self.ks.keys.remove(key);
            self.changed(key, Cause::Expired);
        }
    }
}
