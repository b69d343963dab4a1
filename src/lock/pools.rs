//! Locks with permits of which not every holder is known yet: after a restart, or when
//! others had a hand in them. There can be very many, so they are read in parts.

use std::collections::BTreeMap;

use super::{Key, Owner, Pool};

/// How far the holders of a lock are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The fields of its hash, up to this cursor.
    Fields(u64),
    /// All its fields; those who are known and may not be there any more, up to this one.
    Known(Option<Owner>),
}

/// No more wrong fields are remembered. What is forgotten is found again by whoever reads it.
const MOST_WRONG: usize = 1024;

#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// Those that are read, and what was out when they were last looked at.
    unread: BTreeMap<Key, (Progress, Pool)>,
    /// A field that was found, and is no permit: the hash is no lock while it is there.
    wrong: BTreeMap<Key, Owner>,
}

impl Pools {
    /// The holders of a lock are read so far.
    pub fn put(&mut self, key: &Key, progress: Progress, pool: Pool) {
        self.unread.insert(key.clone(), (progress, pool));
    }

    /// The holders of a lock are to be read, all of them.
    pub fn begin(&mut self, key: &Key, pool: Pool) {
        self.put(key, Progress::Fields(0), pool);
    }

    /// How far they are read, if not all of them are.
    pub fn progress(&self, key: &Key) -> Option<&Progress> {
        self.unread.get(key).map(|(progress, _)| progress)
    }

    /// What was out when they were last looked at.
    pub fn seen(&self, key: &Key) -> Option<Pool> {
        self.unread.get(key).map(|(_, pool)| *pool)
    }

    /// All of them are read.
    pub fn are_read(&mut self, key: &Key) {
        self.unread.remove(key);
    }

    /// A lock whose holders are to be read.
    pub fn next(&self) -> Option<&Key> {
        self.unread.keys().next()
    }

    /// This field is no permit.
    pub fn is_wrong(&mut self, key: &Key, field: Owner) {
        self.unread.remove(key);
        if self.wrong.len() >= MOST_WRONG {
            self.wrong.pop_first();
        }
        self.wrong.insert(key.clone(), field);
    }

    /// The field that was found to be no permit.
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
