//! All locks of which anything is known, by database and name, and the index of when
//! something in them ends. What is known of a lock is changed here and nowhere else.

mod ending;
mod ends;
mod forgotten;
mod heard;
mod shown;
mod sweeps;

pub use sweeps::Place;

use super::databases::Databases;
use super::endings::Endings;
use super::entry::Entry;
use super::held::Held;
use super::hold::{Begun, Hold, Party};
use super::lengths::Lengths;
use super::names::Names;
use super::records::{New, Record, Records};
use super::shared::{Change, Shared};
use super::sieve::Sieve;
use crate::lock::deadlines::Deadlines;
use crate::lock::{Bytes, ClientId, Key, Mode, Token, WakeTarget, WallMs, WallUs};

/// The keys of one database.
#[derive(Clone, Debug, Default)]
struct Table {
    entries: Names<Entry>,
    /// Locks that are only held.
    records: Records,
    /// The moment under which each of them stands here is its `deadline`.
    leases: Deadlines<WallMs, Bytes>,
    held: Held,
}

impl Table {
    /// What is kept of a name, in one way or the other.
    fn kept(&self, name: &[u8]) -> Option<Kept<'_>> {
        let hash = self.entries.hash(name);
        let record = || {
            let row = self.records.find(hash, name)?;
            Some(Kept::Record(row, self.records.get(row)?))
        };
        let entry = self.entries.by_hash(hash, name);
        entry
            .map(|(name, entry)| Kept::Entry(name, entry))
            .or_else(record)
    }

    /// More is to be known of a lock than a record keeps.
    fn promote(&mut self, row: u32) {
        let Some(record) = self.records.remove(row) else {
            return;
        };
        let (name, entry) = (Bytes::from(record.name()), record.into_entry());
        self.leases.change(&name, None, entry.deadline);
        self.entries.get_or_insert(&name, || entry);
    }

    /// The same, if it is by this name.
    fn promote_any(&mut self, name: &[u8]) {
        if self.records.len() > 0 {
            let row = self.records.find(self.entries.hash(name), name);
            row.into_iter().for_each(|row| self.promote(row));
        }
    }

    /// Those of which more is to be known, for they end before this: at most so many.
    fn promote_due(&mut self, limit: WallMs, most: usize) {
        for _ in 0..most {
            match self.records.first() {
                Some((row, record)) if record.ends < limit => self.promote(row),
                _ => return,
            }
        }
    }

    /// What is known of a key, to be changed.
    fn entry_mut(&mut self, name: &[u8]) -> Option<&mut Entry> {
        self.promote_any(name);
        self.entries.get_mut(name)
    }

    /// The same; from now on there is something.
    fn entry(&mut self, name: &Bytes, stamp: u32) -> Parts<'_> {
        self.promote_any(name);
        let entry = self.entries.get_or_insert(name, || Entry::new(stamp));
        (entry, &mut self.held, &mut self.leases)
    }
}

/// What is known of a key, and what is kept beside that.
type Parts<'a> = (
    &'a mut Entry,
    &'a mut Held,
    &'a mut Deadlines<WallMs, Bytes>,
);

/// What is kept of a name.
enum Kept<'a> {
    Entry(&'a Bytes, &'a Entry),
    Record(u32, &'a Record),
}

/// What is known of a lock that somebody holds once.
#[derive(Clone, Copy, Debug)]
pub struct OnlyHeld {
    /// Of its record, until something changes here: nobody waits for it.
    pub row: Option<u32>,
    pub token: Option<Token>,
    pub ends: WallMs,
}

impl Kept<'_> {
    fn name(&self) -> &[u8] {
        match self {
            Self::Entry(name, _) => name,
            Self::Record(_, record) => record.name(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Locks {
    tables: Databases<Table>,
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
            Some(Kept::Entry(name, _)) => name.clone(),
            Some(Kept::Record(..)) | None => Bytes::from(name),
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

    fn kept(&self, db: i32, name: &[u8]) -> Option<Kept<'_>> {
        self.tables.get(db)?.kept(name)
    }

    /// If nothing is known of a lock but that this owner holds it until a known moment, and
    /// perhaps that it is waited for.
    pub fn only_held_by(&self, db: i32, name: &[u8], owner: &[u8]) -> Option<OnlyHeld> {
        let (row, (token, ends)) = match self.kept(db, name)? {
            Kept::Entry(_, entry) => (None, entry.only_held_by(owner)?),
            Kept::Record(row, record) if *record.owner() == *owner => {
                (Some(row), (Some(record.begun.token), record.ends))
            }
            Kept::Record(..) => return None,
        };
        Some(OnlyHeld { row, token, ends })
    }

    /// Of a lock that is only held: its record, and its row until something changes here.
    fn record(&self, db: i32, name: &[u8]) -> Option<(u32, &Record)> {
        match self.kept(db, name)? {
            Kept::Record(row, record) => Some((row, record)),
            Kept::Entry(..) => None,
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.by_name(key.db, &key.name)
    }

    pub fn by_name(&self, db: i32, name: &[u8]) -> Option<&Entry> {
        match self.kept(db, name)? {
            Kept::Entry(_, entry) => Some(entry),
            Kept::Record(_, record) => Some(record.entry()),
        }
    }

    /// The known holders, if it is a lock that several may hold.
    pub fn shared(&self, key: &Key) -> Option<&Shared> {
        // As a rule there is none at all.
        let shared = || self.get(key)?.shared();
        (!self.lengths.is_empty()).then(shared).flatten()
    }

    pub fn party(&self, key: &Key, owner: &[u8]) -> Option<&Party> {
        self.shared(key)?.party(owner)
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
        let entry = table.entry_mut(&key.name)?;
        let was = entry.is_heard();
        let changed = change(entry);
        self.heard.change(&key.name, was, entry.is_heard());
        Some(changed)
    }

    fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.tables.get_mut(key.db)?.entry_mut(&key.name)
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

    /// Somebody waits for the key from now on, or nobody any more.
    pub fn set_waited_for(&mut self, key: &Key, on: bool) {
        if on {
            self.set_presumed(key, None);
            self.get_or_new(key);
        }
        self.change(key, |entry| entry.waited_for = on);
        if !on {
            // When what is no lock ends matters to those who wait for it.
            if self.get(key).is_some_and(|entry| entry.foreign) {
                self.set_deadline(key, None);
            }
            self.tidy(key);
        }
    }

    /// Counts hand-overs up to so many; whether this was the first of them.
    pub fn passes(&mut self, key: &Key, most: u8) -> bool {
        let Some(entry) = self.get_mut(key) else {
            return false;
        };
        let is_first = entry.passes == 0;
        let next = entry.passes.wrapping_add(1);
        entry.passes = next.checked_rem(most).unwrap_or(0);
        is_first
    }

    /// Whether the owner is known to hold permits of the lock.
    pub fn has_permits(&self, key: &Key, owner: &[u8]) -> bool {
        let party = self.party(key, owner);
        party.is_some_and(|party| party.has_permits)
    }

    /// An owner that holds permits of the lock waits for it too, or does not any more.
    pub fn set_waits(&mut self, key: &Key, owner: &[u8], on: bool) {
        let party = self.party(key, owner);
        if party.is_some_and(|party| party.has_permits && party.waits != on) {
            self.change_shared(key, |shared| {
                shared.change(owner, |party| party.waits = on);
            });
        }
    }

    // Holders.

    /// Records the one owner of a plain lock, and when it ends.
    pub fn set_plain(&mut self, key: &Key, hold: Hold, ends: Option<WallMs>) {
        self.believe(key);
        let table = self.tables.get_or_new(key.db);
        let (entry, held, leases) = table.entry(&key.name, self.stamp);
        held.lock(entry.is_held(), true);
        held.begins(hold.since());
        let was_heard = entry.is_heard();
        let was = entry.plain.replace(hold).and_then(|hold| hold.since());
        held.ends(was);
        self.over.extend(was);
        let from = std::mem::replace(&mut entry.deadline, ends);
        entry.foreign = false;
        self.heard.change(&key.name, was_heard, entry.is_heard());
        leases.change(&key.name, from, ends);
    }

    /// Records the one owner of a plain lock of which nothing was known, and nothing else is to be.
    pub fn keep(
        &mut self,
        key: &Key,
        owner: &[u8],
        (begun, client): (Begun, Option<ClientId>),
        ends: WallMs,
    ) {
        let (table, stamp) = (self.tables.get_or_new(key.db), self.stamp);
        let (name, hash) = (&key.name[..], table.entries.hash(&key.name));
        table.held.lock(false, true);
        table.held.begins(Some(begun.since));
        table.records.insert(
            hash,
            New {
                name,
                owner,
                begun,
                client,
                ends,
                stamp,
            },
        );
    }

    /// A hold that was found has a token from now on, and is held since then, as far as is
    /// known.
    pub fn begin(&mut self, key: &Key, owner: &[u8], token: Token, now: WallUs) {
        let Some(table) = self.tables.get_mut(key.db) else {
            return;
        };
        table.promote_any(&key.name);
        let entry = table.entries.get_mut(&key.name);
        let held = &mut table.held;
        let begin = |hold: &mut Hold| {
            if hold.begun.is_none() {
                hold.begun = Some(Begun { token, since: now });
                held.begins(Some(now));
            }
        };
        entry.and_then(|entry| entry.change_hold(owner, begin));
    }

    /// Takes away what is known of a plain hold.
    pub fn take_plain(&mut self, key: &Key) -> Option<Hold> {
        let table = self.tables.get_mut(key.db)?;
        table.promote_any(&key.name);
        let entry = table.entries.get_mut(&key.name)?;
        let was_heard = entry.is_heard();
        let hold = entry.plain.take()?;
        self.heard.change(&key.name, was_heard, entry.is_heard());
        table.held.lock(true, entry.is_held());
        table.held.ends(hold.since());
        self.over.extend(hold.since());
        Some(hold)
    }

    /// Its plain hold may be another one of the same owner's: no token is known of it.
    pub fn doubt(&mut self, key: &Key) {
        let Some(entry) = self.get(key) else { return };
        let (begun, ends) = (entry.plain().and_then(|hold| hold.begun), entry.deadline);
        if let Some(hold) = begun.and_then(|_| self.take_plain(key)) {
            let begun = None;
            self.set_plain(key, Hold { begun, ..hold }, ends);
        }
    }

    /// Changes what is known of a lock that several may hold, and when it is due.
    pub fn change_shared(&mut self, key: &Key, change: impl FnOnce(&mut Shared)) {
        self.believe(key);
        let table = self.tables.get_or_new(key.db);
        let (entry, held, _) = table.entry(&key.name, self.stamp);
        let (was_held, was) = (entry.is_held(), entry.shared.is_some());
        let was_heard = entry.is_heard();
        let shared = entry.shared.get_or_insert_default();
        change(shared);
        for (since, change) in shared.take_changes() {
            if change == Change::Begins {
                held.begins(Some(since));
            } else {
                held.ends(Some(since));
                self.over.push(since);
            }
        }
        entry.foreign = false;
        let mut to = shared.first_end();
        if shared.is_empty() && entry.plain.is_none() {
            entry.shared = None;
            to = None;
        }
        let is = entry.shared.is_some();
        held.lock(was_held, entry.is_held());
        self.heard.change(&key.name, was_heard, entry.is_heard());
        self.lengths.change(key.name.len(), was, is);
        self.set_deadline(key, to);
    }

    /// Puts this in the place of what is known of a lock that several may hold.
    pub fn set_shared(&mut self, key: &Key, shared: Shared) {
        self.change_shared(key, |known| known.replace(shared));
    }

    // Ends.

    /// Puts the key under another moment of the index: the one at which something of
    /// a lock ends.
    pub fn set_deadline(&mut self, key: &Key, to: Option<WallMs>) {
        // Nothing is remembered of a key only because nothing ends there.
        if to.is_none() && self.get(key).is_none() {
            return;
        }
        self.believe(key);
        let table = self.tables.get_or_new(key.db);
        let (entry, _, leases) = table.entry(&key.name, self.stamp);
        let was_heard = entry.is_heard();
        let from = std::mem::replace(&mut entry.deadline, to);
        self.heard.change(&key.name, was_heard, entry.is_heard());
        if from != to {
            entry.foreign = false;
            leases.change(&key.name, from, to);
        }
    }

    /// The same for a key that is no lock, and is waited for.
    pub fn set_foreign_deadline(&mut self, key: &Key, to: Option<WallMs>) {
        self.set_deadline(key, to);
        self.get_or_new(key).foreign = to.is_some();
    }

    /// The key could be a lock that ends then, and whom its end wakes; `None`: it is not
    /// presumed any more. What is known of a key is known still.
    pub fn set_presumed(&mut self, key: &Key, to: Option<(WakeTarget, WallMs)>) {
        if self.get(key).is_some_and(|entry| !entry.is_presumed()) {
            return;
        }
        self.set_deadline(key, to.map(|(_, at)| at));
        if let Some((whom, _)) = to {
            self.get_or_new(key);
            self.change(key, |entry| entry.presumed = Some(whom));
            self.presumed = self.presumed.saturating_add(1);
        }
        self.tidy(key);
    }

    /// How many are presumed.
    pub fn presumed(&self) -> usize {
        self.presumed
    }

    /// What was presumed is known from now on.
    fn believe(&mut self, key: &Key) {
        if self.presumed > 0 {
            let presumed = self.change(key, |entry| entry.presumed.take()).flatten();
            let one = usize::from(presumed.is_some());
            self.presumed = self.presumed.saturating_sub(one);
        }
    }

    /// Whether the owner is known to read under this lock.
    pub fn knows_reader(&self, db: i32, name: &[u8], owner: &[u8]) -> bool {
        if !self.lengths.has(name.len()) {
            return false;
        }
        let shared = self.by_name(db, name).and_then(Entry::shared);
        let party = shared.and_then(|shared| shared.party(owner));
        party.is_some_and(|party| party.reads)
    }

    /// How many moments stand in the index.
    #[cfg(test)]
    pub fn deadlines(&self) -> usize {
        let each = self.tables.values();
        each.map(|table| table.leases.len() + table.records.len())
            .sum()
    }

    /// Asserts that the index and the lengths are those of the entries.
    #[cfg(test)]
    pub fn check(&self) {
        let (mut lengths, mut presumed) = (Lengths::default(), 0);
        let mut heard = Sieve::default();
        for (db, table) in self.tables.iter() {
            let (mut due, mut held) = (0, Held::default());
            for (_, _, hold) in self.endings.holds().filter(|(_, its, _)| *its == db) {
                held.begins(hold.since());
            }
            for (name, entry) in table.entries.iter() {
                lengths.change(name.len(), false, entry.shared.is_some());
                heard.change(name, false, entry.is_heard());
                due += usize::from(entry.deadline.is_some());
                held.lock(false, entry.is_held());
                entry.holds().for_each(|hold| held.begins(hold.since()));
                assert!(!entry.is_idle(), "{name:?} is remembered for nothing");
                if entry.is_presumed() {
                    presumed += 1;
                    let any = entry.is_held() || entry.foreign || entry.waited_for;
                    assert!(!any && entry.deadline.is_some(), "{name:?}: {entry:?}");
                }
                if let Some(shared) = entry.shared() {
                    shared.check();
                }
            }
            assert_eq!(table.leases.len(), due);
            table.records.check();
            for record in table.records.iter() {
                assert!(
                    table.entries.get(record.name()).is_none(),
                    "it is kept twice"
                );
                held.lock(false, true);
                held.begins(Some(record.begun.since));
            }
            assert_eq!(table.held, held);
        }
        assert_eq!(self.lengths, lengths);
        assert_eq!(self.heard, heard);
        assert_eq!(self.presumed, presumed);
    }
}
