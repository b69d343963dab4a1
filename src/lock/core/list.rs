//! The locks that are held, a page at a time.
//!
//! A page goes through what is known in an order that nothing changes: by part of the
//! table, by name, and by owner where several hold a lock. So what is held all the time is
//! told once, whatever comes and goes between two pages.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::describe::Known;
use super::Core;
use crate::lock::key::Bytes;
use crate::lock::kind;
use crate::lock::kind::read_write::known::is_left_over;
use crate::lock::table::{Entry, Hold};
use crate::lock::{Holder, Key, Keyspace, Now, Owner};

/// Where a page ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Of the table: it is no place in another one.
    pub order: u64,
    pub name: Vec<u8>,
    /// The last owner that was looked at; `None`: all of them were.
    pub owner: Option<Vec<u8>>,
}

/// What is asked for.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub db: i32,
    pub behind: Option<&'a Cursor>,
    /// Owners that begin with this.
    pub owner: &'a [u8],
    /// Those who are known to have held the lock for more than so many ms.
    pub held_longer: Option<i64>,
    /// At most so many holders are looked at, or locks that are passed over.
    pub count: usize,
}

/// A holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub name: Bytes,
    pub holder: Holder,
    pub known: Known,
    /// No request has come to the lock: an application's own hash can look the same.
    pub presumed: bool,
}

/// What was found, and where to go on; `None`: it was the last page.
pub type Page = (Vec<Held>, Option<Cursor>);

impl Core {
    /// A page of the holders of locks. `may_see`: whether a lock of this name is to be
    /// told. `None`: the cursor is of another table.
    pub fn list<K: Keyspace>(
        &self,
        ks: &mut K,
        now: Now,
        wanted: &Wanted<'_>,
        may_see: impl Fn(&[u8]) -> bool,
    ) -> Option<Page> {
        let (mut page, mut left) = (Vec::new(), wanted.count);
        let behind = wanted.behind;
        let Some(order) = self.locks.order(wanted.db) else {
            return behind.is_none().then_some((page, None));
        };
        if behind.is_some_and(|cursor| cursor.order != order) {
            return None;
        }
        let cursor = |name: &[u8], owner: Option<&Hold>| {
            Some(Cursor {
                order,
                name: name.to_vec(),
                owner: owner.map(|hold| hold.owner.to_vec()),
            })
        };
        let mut reached = None;
        let locks = self.locks.from(wanted.db, begin(behind), wanted.count);
        let more = locks.len() == wanted.count;
        for (name, entry) in locks {
            if left == 0 {
                return Some((page, reached));
            }
            // The first may be one that was told in part.
            let cut = behind.filter(|cursor| *cursor.name == *name);
            let owner = cut.and_then(|cursor| cursor.owner.as_deref());
            let seen = may_see(&name);
            let key = Key {
                db: wanted.db,
                name: name.clone(),
            };
            let entry = &*entry;
            let unknown = match seen && entry.is_presumed() {
                true => self.unknown_holds(ks, now, &key, owner),
                false => Vec::new(),
            };
            let known = seen.then(|| entry.holds_behind(owner));
            let before = left;
            let mut last = None;
            for hold in known.into_iter().flatten().chain(&unknown) {
                let Some(rest) = left.checked_sub(1) else {
                    return Some((page, cursor(&name, last)));
                };
                left = rest;
                last = Some(hold);
                self.look_at_hold(ks, now, wanted, (&key, entry, hold), &mut page);
            }
            if left == before {
                left = left.saturating_sub(1);
            }
            reached = cursor(&name, None);
        }
        Some((page, reached.filter(|_| more)))
    }

    /// The holds on a presumed lock behind this owner, in the order of their owners, each
    /// owner once.
    fn unknown_holds<K: Keyspace>(
        &self,
        ks: &mut K,
        now: Now,
        key: &Key,
        behind: Option<&[u8]>,
    ) -> Vec<Hold> {
        let holders = self.holders_of(ks, now, key, usize::MAX);
        let holders = holders.unwrap_or_default();
        let owners = holders.into_iter().map(|holder| holder.owner);
        let is_behind = |owner: &Owner| behind.is_none_or(|behind| &**owner > behind);
        let owners: BTreeSet<Owner> = owners.filter(is_behind).collect();
        owners.into_iter().map(Hold::of).collect()
    }

    /// Puts what an owner holds there to the page, if it is asked for.
    fn look_at_hold<K: Keyspace>(
        &self,
        ks: &mut K,
        now: Now,
        wanted: &Wanted<'_>,
        (key, entry, hold): (&Key, &Entry, &Hold),
        page: &mut Vec<Held>,
    ) {
        let is_long = |ms| hold.held_ms(now).is_some_and(|held| held > ms);
        if !hold.owner.starts_with(wanted.owner) || !wanted.held_longer.is_none_or(is_long) {
            return;
        }
        let look = ks.look(key, &hold.owner);
        let left_over = is_left_over(Some(entry), &hold.owner, look.lease);
        let held = kind::holds(&look, left_over).map(|(mode, holds, lease)| Held {
            name: key.name.clone(),
            holder: Holder {
                owner: hold.owner.clone(),
                mode,
                holds,
                lease,
            },
            known: self.known(now, key, hold, mode),
            presumed: entry.is_presumed(),
        });
        page.extend(held);
    }
}

/// From where a page goes on.
fn begin(behind: Option<&Cursor>) -> Bound<&[u8]> {
    behind.map_or(Bound::Unbounded, |cursor| match cursor.owner {
        Some(_) => Bound::Included(&cursor.name),
        None => Bound::Excluded(&cursor.name),
    })
}
