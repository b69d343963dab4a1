//! All locks of which anything is known, by database and name. What is known of a lock is changed
//! here and nowhere else.

#[cfg(test)]
mod check;
mod ending;
mod ends;
mod forgotten;
mod heard;
mod holders;
mod shown;
mod sweeps;
mod waited_for;

pub use sweeps::Place;

use super::database::{Database, Named, OnlyHeld};
use super::databases::Databases;
use super::endings::Endings;
use super::entry::Entry;
use super::hold::Hold;
use super::lengths::Lengths;
use super::records::Record;
use super::shared::Shared;
use super::sieve::Sieve;
use crate::lock::{Bytes, Key, Mode, Token, WallUs};

#[derive(Clone, Debug, Default)]
pub struct Locks {
    tables: Databases<Database>,
    /// Of the names of the read/write locks among them.
    lengths: Lengths,
    /// The names of those at which what others do is to be heard.
    heard: Sieve,
    /// So many of them are presumed.
    presumed: usize,
    /// Of entries that are made now: sweeps that began before do not mean them.
    stamp: u32,
    /// Since when holds were that have ended in the decision under way.
    over: Vec<WallUs>,
    /// Those that have ended with very many holders.
    endings: Endings,
}

impl Locks {
    pub fn is_empty(&self) -> bool {
        let mut tables = self.tables.values();
        tables.all(|table| table.entries.is_empty() && table.records.len() == 0)
    }

    /// The key by this name, which is shared with the copy here if there is one.
    pub fn key(&self, db: i32, name: &[u8]) -> Key {
        let name = match self.kept(db, name) {
            Some(Named::Entry(name, _)) => name.clone(),
            Some(Named::Record(..)) | None => Bytes::from(name),
        };
        Key { db, name }
    }

    /// All keys of which anything is remembered.
    #[cfg(test)]
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        for (db, table) in self.tables.iter() {
            let names = table.entries.iter().map(|(name, _)| name.clone());
            let records = table.records.iter();
            let names = names.chain(records.map(|record| Bytes::from(record.name())));
            keys.extend(names.map(|name| Key { db, name }));
        }
        keys
    }

    /// Whether anything is remembered of a key by this name.
    pub fn contains(&self, db: i32, name: &[u8]) -> bool {
        self.kept(db, name).is_some()
    }

    fn kept(&self, db: i32, name: &[u8]) -> Option<Named<'_>> {
        self.tables.get(db)?.kept(name)
    }

    /// If nothing is known of a lock but that this owner holds it until a known moment, and
    /// perhaps that it is waited for.
    pub fn only_held_by(&self, db: i32, name: &[u8], owner: &[u8]) -> Option<OnlyHeld> {
        let (row, (token, ends)) = match self.kept(db, name)? {
            Named::Entry(_, entry) => (None, entry.only_held_by(owner)?),
            Named::Record(row, record) if *record.owner() == *owner => {
                (Some(row), (Some(record.begun.token), record.ends))
            }
            Named::Record(..) => return None,
        };
        Some(OnlyHeld { row, token, ends })
    }

    /// Of a lock that is only held: its record, and its row until something changes here.
    fn record(&self, db: i32, name: &[u8]) -> Option<(u32, &Record)> {
        match self.kept(db, name)? {
            Named::Record(row, record) => Some((row, record)),
            Named::Entry(..) => None,
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.by_name(key.db, &key.name)
    }

    pub fn by_name(&self, db: i32, name: &[u8]) -> Option<&Entry> {
        let table = self.tables.get(db)?;
        match table.kept(name)? {
            Named::Entry(_, entry) => Some(entry),
            Named::Record(row, _) => table.records.entry(row),
        }
    }

    /// The known holders, if it is a lock that several may hold.
    pub fn shared(&self, key: &Key) -> Option<&Shared> {
        // As a rule there is none at all.
        let shared = || self.get(key)?.shared();
        (!self.lengths.is_empty()).then(shared).flatten()
    }

    /// What is known of an owner that holds the lock as one of several.
    pub fn sharer(&self, key: &Key, owner: &[u8]) -> Option<&Hold> {
        self.shared(key)?.hold(owner)
    }

    pub fn hold(&self, key: &Key, owner: &[u8]) -> Option<&Hold> {
        self.get(key)?.hold(owner)
    }

    /// Whether an owner's holds in this mode are known to have this token.
    pub fn has_token(&self, key: &Key, owner: &[u8], mode: Mode, token: Token) -> bool {
        let tokens = self.get(key).and_then(|entry| entry.tokens(owner, mode));
        tokens.is_some_and(|(first, newest)| (first..=newest).contains(&token))
    }

    /// An owner was told this token for what it holds in this mode.
    pub fn given(&mut self, key: &Key, owner: &[u8], mode: Mode, token: Token) {
        let entry = self.get_mut(key).filter(|_| mode != Mode::Exclusive);
        if let Some(shared) = entry.and_then(|entry| entry.shared.as_mut()) {
            shared.given(owner, mode, token);
        }
    }

    /// To change what is known of a hold. The lock does not end by that.
    pub fn change_hold<T>(
        &mut self,
        key: &Key,
        owner: &[u8],
        change: impl FnOnce(&mut Hold) -> T,
    ) -> Option<T> {
        self.change(key, |entry| entry.change_hold(owner, change))?
    }

    /// Changes what is known of a key of which something is.
    fn change<T>(&mut self, key: &Key, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let table = self.tables.get_mut(key.db)?;
        let (entry, ..) = table.known(&key.name)?;
        let was = entry.is_heard();
        let changed = change(entry);
        self.heard.change(&key.name, was, entry.is_heard());
        Some(changed)
    }

    fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        let (entry, ..) = self.tables.get_mut(key.db)?.known(&key.name)?;
        Some(entry)
    }

    fn get_or_new(&mut self, key: &Key) -> &mut Entry {
        let table = self.tables.get_or_new(key.db);
        table.entry(&key.name, self.stamp).0
    }

    /// Forgets the key if nothing of it is worth remembering.
    pub fn tidy(&mut self, key: &Key) {
        if let Some(table) = self.tables.get_mut(key.db) {
            table.entries.remove_if(&key.name, |entry| entry.is_idle());
        }
    }

    /// Whether the owner is known to read under this lock.
    pub fn knows_reader(&self, db: i32, name: &[u8], owner: &[u8]) -> bool {
        if !self.lengths.has(name.len()) {
            return false;
        }
        let shared = self.by_name(db, name).and_then(Entry::shared);
        let hold = shared.and_then(|shared| shared.hold(owner));
        hold.is_some_and(|hold| hold.reads)
    }
}
