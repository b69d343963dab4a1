//! Locks that several hold of which not every holder is known yet: after a restart, or when
//! others had a hand in them. There can be very many, so they are read in parts.

use std::collections::BTreeMap;

use super::{Key, Owner, Pool};

/// How far the holders of a lock are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The fields of its hash, up to this cursor.
    Fields(u64),
    /// Those who are known and may not be there any more, up to this one.
    Known(Option<Owner>),
}

/// What the hash said when it was last looked at: if it says otherwise by others' doing, it is
/// read anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// So many permits were out.
    Out(Pool),
    /// It has so many more fields than are known of a read/write lock.
    Unknown(i64),
}

/// No more wrong fields are remembered. What is forgotten is found again by whoever reads it.
const MOST_WRONG: usize = 1024;

#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// Those that are read.
    unread: BTreeMap<Key, (Progress, Seen)>,
    /// A field that was found, and is no hold: the hash is no lock while it is there.
    wrong: BTreeMap<Key, Owner>,
}

impl Pools {
    /// The holders of a lock are read so far.
    pub fn put(&mut self, key: &Key, progress: Progress, seen: Seen) {
        self.unread.insert(key.clone(), (progress, seen));
    }

    /// The holders of a lock are to be read, all of them.
    pub fn begin(&mut self, key: &Key, seen: Seen) {
        self.put(key, Progress::Fields(0), seen);
    }

    /// How far they are read, if not all of them are.
    pub fn progress(&self, key: &Key) -> Option<&Progress> {
        self.unread.get(key).map(|(progress, _)| progress)
    }

    /// What the hash said when it was last looked at.
    pub fn seen(&self, key: &Key) -> Option<Seen> {
        self.unread.get(key).map(|(_, seen)| *seen)
    }

    /// So many fields more are known.
    pub fn learned(&mut self, key: &Key, fields: i64) {
        if let Some((_, Seen::Unknown(unknown))) = self.unread.get_mut(key) {
            *unknown = unknown.saturating_sub(fields);
        }
    }

    /// All of them are read.
    pub fn are_read(&mut self, key: &Key) {
        self.unread.remove(key);
    }

    /// A lock whose holders are to be read.
    pub fn next(&self) -> Option<&Key> {
        self.unread.keys().next()
    }

    /// This field is no hold.
    pub fn is_wrong(&mut self, key: &Key, field: Owner) {
        self.unread.remove(key);
        if self.wrong.len() >= MOST_WRONG {
            self.wrong.pop_first();
        }
        self.wrong.insert(key.clone(), field);
    }

    /// The field that was found to be no hold.
    pub fn wrong(&self, key: &Key) -> Option<&Owner> {
        self.wrong.get(key)
    }

    /// Keys go by other names now.
    pub fn rename(&mut self, to: impl Fn(&Key) -> Key) {
        let unread = std::mem::take(&mut self.unread).into_iter();
        self.unread = unread.map(|(key, how)| (to(&key), how)).collect();
        let wrong = std::mem::take(&mut self.wrong).into_iter();
        self.wrong = wrong.map(|(key, field)| (to(&key), field)).collect();
    }

    /// The key is something else now, or gone; or what was wrong there is right.
    pub fn forget(&mut self, key: &Key) {
        if !self.unread.is_empty() {
            self.unread.remove(key);
        }
        if !self.wrong.is_empty() {
            self.wrong.remove(key);
        }
    }
}
