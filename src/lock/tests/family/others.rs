//! What others do to keys, and what the server then tells the shell.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::model::{Mode, Owner, Place, FOUND_LIMIT, NEVER};
use super::ops::OWNERS;
use super::shell::{at, Shell};
use crate::lock::memory::Value;
use crate::lock::{Cause, Key, Kind, Pool, WallMs};

pub type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

/// The lease key of a read hold.
pub fn lease_key(place: Place, owner: Owner, index: usize) -> Key {
    // Asked for all the time.
    thread_local! {
        static KNOWN: RefCell<HashMap<(Place, Owner, usize), Key>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        let new = || {
            let (db, name) = place;
            let name = format!("{{{name}}}:{owner}:rwlock_timeout:{index}");
            Key::new(db, name.as_bytes())
        };
        let key = known.entry((place, owner, index)).or_insert_with(new);
        key.clone()
    })
}

fn field(owner: Owner, mode: Mode) -> Vec<u8> {
    match mode {
        Mode::Plain | Mode::Read | Mode::Permits => owner.as_bytes().to_vec(),
        Mode::Write => format!("{owner}:write").into_bytes(),
    }
}

fn ttl(ends: i64) -> Option<WallMs> {
    (ends != NEVER).then_some(WallMs(ends))
}

/// So many more permits are out.
fn change_pool(fields: &mut Fields, by: i64) {
    let found = crate::lock::kind::look(fields, &[], None);
    let pool = match found.kind {
        Kind::Permits(pool) => pool,
        _ => Pool {
            asked: FOUND_LIMIT as i64,
            limit: FOUND_LIMIT as i64,
            out: 0,
        },
    };
    let text = crate::lock::kind::pool_text(pool.plus(by));
    fields.insert(b"mode".to_vec(), text.into_bytes());
}

impl Shell {
    pub fn fields(&self, place: Place) -> Option<&Fields> {
        match self.ks.keys.get(&at(place)) {
            Some((Value::Hash(fields), _)) => Some(fields),
            _ => None,
        }
    }

    pub fn count(&self, place: Place, owner: Owner, mode: Mode) -> usize {
        let fields = self.fields(place);
        let count = fields.and_then(|fields| fields.get(&field(owner, mode)));
        // Of permits: how many, and until when.
        let number = |n: &[u8]| n.split(|byte| *byte == b'@').next().unwrap().to_vec();
        count.map_or(0, |n| {
            String::from_utf8(number(n)).unwrap().parse().unwrap()
        })
    }

    /// DEL or UNLINK, or eviction.
    pub fn del(&mut self, place: Place, evicted: bool) {
        let key = at(place);
        self.touch(&key);
        if self.ks.keys.remove(&key).is_some() {
            let cause = if evicted {
                Cause::Evicted
            } else {
                Cause::Removed
            };
            self.changed(&key, cause);
        }
    }

    /// PEXPIRE, or PERSIST.
    pub fn pexpire(&mut self, place: Place, ends: i64) {
        let key = at(place);
        self.touch(&key);
        if let Some((_, at)) = self.ks.keys.get_mut(&key) {
            *at = ttl(ends);
            self.changed(&key, Cause::Unknown);
        }
    }

    pub fn set(&mut self, place: Place, ends: i64) {
        let key = at(place);
        self.touch(&key);
        self.ks.keys.insert(key.clone(), (Value::Text, ttl(ends)));
        self.changed(&key, Cause::Overwritten);
    }

    /// HSET of somebody's, where nothing is.
    pub fn data(&mut self, place: Place, owner: Owner, count: usize) {
        let fields = Fields::from([(owner.into(), count.to_string().into())]);
        let value = (Value::Hash(fields), None);
        self.ks.keys.insert(at(place), value);
        self.hash_changed(place);
    }

    /// RENAME, or MOVE when the databases differ.
    pub fn rename(&mut self, from: Place, to: Place) {
        let (from, to) = (at(from), at(to));
        self.touch(&from);
        self.touch(&to);
        if let Some(value) = self.ks.keys.remove(&from) {
            self.ks.keys.insert(to.clone(), value);
            self.renamed(&from, &to);
        }
    }

    /// A script of Redisson's takes the lock: the first to come, or a reader who
    /// joins others.
    pub fn script_takes(&mut self, place: Place, owner: Owner, mode: Mode, ends: i64) {
        let key = at(place);
        self.touch(&key);
        let (value, until) = self
            .ks
            .keys
            .entry(key.clone())
            .or_insert((Value::Hash(Fields::new()), ttl(ends)));
        let Value::Hash(fields) = value else {
            panic!("a script took a text");
        };
        if mode == Mode::Permits {
            change_pool(fields, 1);
            fields.insert(owner.into(), format!("1@{ends}").into_bytes());
        } else if mode != Mode::Plain {
            let word = if mode == Mode::Read { "read" } else { "write" };
            fields.insert(b"mode".to_vec(), word.into());
        }
        if mode != Mode::Permits {
            fields.insert(field(owner, mode), b"1".to_vec());
        }
        *until = until.map(|at| at.max(WallMs(ends)));
        if mode == Mode::Read {
            let lease = lease_key(place, owner, 1);
            self.ks.keys.insert(lease, (Value::Text, ttl(ends)));
        }
        self.hash_changed(place);
    }

    /// A script of Redisson's gives back what a script took.
    pub fn script_leaves(&mut self, place: Place, owner: Owner, mode: Mode) {
        let key = at(place);
        self.touch(&key);
        if mode == Mode::Read {
            self.ks.keys.remove(&lease_key(place, owner, 1));
        }
        let Some((Value::Hash(fields), _)) = self.ks.keys.get_mut(&key) else {
            panic!("a script gave back no lock");
        };
        fields.remove(&field(owner, mode));
        if mode == Mode::Permits {
            change_pool(fields, -1);
        }
        if fields.keys().all(|name| name == b"mode") {
            self.ks.keys.remove(&key);
            self.changed(&key, Cause::Removed);
        } else {
            self.hash_changed(place);
        }
    }

    /// Events of hashes that stay are listened to only while somebody waits.
    fn hash_changed(&mut self, place: Place) {
        if self.core.describe(self.now, &at(place)).waiters > 0 {
            self.changed(&at(place), Cause::Unknown);
        }
    }

    /// The last lease key of a reader is deleted, or evicted.
    pub fn del_lease(&mut self, place: Place, owner: Owner, evicted: bool) {
        let last = self.count(place, owner, Mode::Read);
        if self
            .ks
            .keys
            .remove(&lease_key(place, owner, last))
            .is_some()
        {
            let cause = if evicted {
                Cause::Evicted
            } else {
                Cause::Removed
            };
            self.lease_changed(&at(place), owner, cause);
        }
    }

    /// All lease keys of a reader get another TTL.
    pub fn pexpire_leases(&mut self, place: Place, owner: Owner, ends: i64) {
        for index in 1..=self.count(place, owner, Mode::Read) {
            let key = lease_key(place, owner, index);
            if let Some((_, at)) = self.ks.keys.get_mut(&key) {
                *at = ttl(ends);
                self.lease_changed(&super::shell::at(place), owner, Cause::Unknown);
            }
        }
    }

    pub fn has_lease_key(&self, place: Place, owner: Owner, index: usize) -> bool {
        self.ks.keys.contains_key(&lease_key(place, owner, index))
    }

    /// Somebody's data under the name of a lease key.
    pub fn squat(&mut self, place: Place, owner: Owner, index: usize) {
        let data = Value::Hash(Fields::from([(b"field".to_vec(), b"value".to_vec())]));
        let key = lease_key(place, owner, index);
        self.ks.keys.insert(key, (data, None));
    }

    /// FLUSHDB, or FLUSHALL.
    pub fn flush(&mut self, db: Option<i32>) {
        let kept = |key: &Key| db.is_some_and(|db| db != key.db);
        self.ks.keys.retain(|key, _| kept(key));
        self.replaced(db);
    }

    /// SWAPDB 0 1.
    pub fn swap(&mut self) {
        let swapped = |key: Key| Key {
            db: 1 - key.db,
            ..key
        };
        let keys = std::mem::take(&mut self.ks.keys).into_iter();
        self.ks.keys = keys.map(|(key, value)| (swapped(key), value)).collect();
        self.swapped(0, 1);
    }

    /// The server's own expiry comes by.
    pub fn expire_cycle(&mut self, places: &[Place]) {
        let owners = OWNERS
            .into_iter()
            .flat_map(|owner| (1..=8).map(move |i| (owner, i)));
        let all = places
            .iter()
            .flat_map(|place| owners.clone().map(move |(o, i)| (place, o, i)));
        for (place, owner, index) in all {
            let key = lease_key(*place, owner, index);
            if self.is_over(&key) {
                self.ks.keys.remove(&key);
                self.lease_changed(&at(*place), owner, Cause::Expired);
            }
        }
        for key in self.ks.keys.keys().cloned().collect::<Vec<_>>() {
            self.touch(&key);
        }
    }

    fn is_over(&self, key: &Key) -> bool {
        let ends = self.ks.keys.get(key).and_then(|(_, ends)| *ends);
        ends.is_some_and(|at| self.ks.now_ms > at)
    }

    /// A command that looks at a key which has run out removes it first.
    fn touch(&mut self, key: &Key) {
        if self.is_over(key) {
            self.ks.keys.remove(key);
            self.changed(key, Cause::Expired);
        }
    }
}
