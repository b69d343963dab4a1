//! Holds of which a connection is to know that somebody waits for them (WANTED): whether that is
//! so, as far as it was looked at, and what is to be looked at next.
//!
//! One lock can be read by very many who all want to know. So it is looked at all of them only when
//! somebody else is first in the queue, some at a time, and at each by itself when its hold begins
//! and when it is due.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::lock::ask::{Binding, Renewal};
use crate::lock::deadlines::Deadlines;
use crate::lock::types::Next;
use crate::lock::{Key, MonoUs, Now, Owner};

/// An owner's lease on a key.
pub type Bond = (Key, Owner);

/// Of an owner's holds on a key.
#[derive(Clone, Debug)]
struct Hinted {
    /// It is told again after so many ms, as long as it is wanted.
    every: i64,
    /// Since when it is wanted.
    since: Option<MonoUs>,
    /// For whom it was told so last.
    told: Option<Next>,
    /// When it is looked at again.
    next: MonoUs,
}

/// The holds on one key.
#[derive(Clone, Debug, Default)]
struct Holds {
    by_owner: BTreeMap<Owner, Hinted>,
    /// Who was first in the queue when it was looked at all of them, if none of them was looked at
    /// alone since, for another.
    seen: Option<Option<Next>>,
    /// For whom it is looked at all of them, and how far that has come.
    under_way: Option<(Option<Next>, Owner)>,
}

#[derive(Clone, Debug, Default)]
pub struct Hints {
    keys: BTreeMap<Key, Holds>,
    due: Deadlines<MonoUs, Bond>,
    /// Whose queue may have another first.
    stirred: BTreeSet<Key>,
    /// Holds that have begun, or are told of elsewhere from now on.
    begun: Vec<Bond>,
}

impl Hints {
    /// Nobody wants to know.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// An owner's holds are bound to this from now on, for so many ms.
    pub fn bound(&mut self, key: &Key, owner: &Owner, to: Binding<'_>, lease: i64, now: Now) {
        if to.wants_hints() {
            self.begin((key.clone(), owner.clone()), lease, now);
        }
    }

    /// Whoever is to know of them does not yet.
    fn begin(&mut self, bond: Bond, lease: i64, now: Now) {
        let holds = self.keys.entry(bond.0.clone()).or_default();
        let was = holds.by_owner.get(&bond.1);
        let every = third(lease).max(was.map_or(0, |was| was.every));
        let next = now.until(every);
        self.due.change(&bond, was.map(|was| was.next), Some(next));
        let hinted = Hinted {
            every,
            since: was.and_then(|was| was.since),
            told: None,
            next,
        };
        holds.by_owner.insert(bond.1.clone(), hinted);
        self.begun.push(bond);
    }

    /// Their lease is another from now on: of a shorter one it is told sooner.
    pub fn renewed(&mut self, key: &Key, owner: &[u8], renewal: &Renewal<'_>, now: Now) {
        let Some(hinted) = self.get_mut(key, owner) else {
            return;
        };
        hinted.every = third(renewal.lease);
        let next = now.until(hinted.every);
        if next < hinted.next {
            self.look_again(&(key.clone(), owner.into()), now);
        }
    }

    /// It is not told of them any more.
    pub fn forget(&mut self, bond: &Bond) {
        let (key, owner) = bond;
        let Some(holds) = self.keys.get_mut(key) else {
            return;
        };
        if let Some(hinted) = holds.by_owner.remove(owner) {
            self.due.change(bond, Some(hinted.next), None);
        }
        if holds.by_owner.is_empty() {
            self.keys.remove(key);
            self.stirred.remove(key);
        }
    }

    /// Another may be first in the queue of a key.
    pub fn stir(&mut self, key: &Key) {
        if self.keys.contains_key(key) {
            self.stirred.insert(key.clone());
        }
    }

    /// Whether there is anything to be looked at now.
    #[inline]
    pub fn is_stirred(&self) -> bool {
        !self.begun.is_empty() || !self.stirred.is_empty()
    }

    /// A hold that has begun.
    pub fn next_begun(&mut self) -> Option<Bond> {
        self.begun.pop()
    }

    /// A key whose queue may have another first.
    pub fn next_stirred(&self) -> Option<&Key> {
        self.stirred.first()
    }

    /// The next hold that is to be looked at on such a key, now that this is the first. `None`: there
    /// are no more, or it was looked at all of them, and nothing is different (`may_differ`).
    pub fn next_on(&mut self, key: &Key, first: Option<Next>, may_differ: bool) -> Option<Bond> {
        let holds = self.keys.get_mut(key)?;
        let under_way = holds.under_way.take();
        let behind = under_way.filter(|(of, _)| *of == first);
        let is_due = may_differ || behind.is_some() || holds.seen != Some(first);
        let from = match &behind {
            Some((_, owner)) => Bound::Excluded(owner),
            None => Bound::Unbounded,
        };
        let mut later = holds.by_owner.range::<Owner, _>((from, Bound::Unbounded));
        let next = later.next().filter(|_| is_due);
        let Some((owner, _)) = next else {
            holds.seen = Some(first);
            self.stirred.remove(key);
            return None;
        };
        holds.under_way = Some((first, owner.clone()));
        Some((key.clone(), owner.clone()))
    }

    /// It was looked at a hold: somebody waits for it, this one being first, or nobody does. Whether
    /// that is to be told.
    pub fn found(&mut self, bond: &Bond, wanted_by: Option<Next>, now: Now) -> bool {
        let (key, owner) = bond;
        let Some(holds) = self.keys.get_mut(key) else {
            return false;
        };
        let Some(hinted) = holds.by_owner.get_mut(owner) else {
            return false;
        };
        if wanted_by.is_some() && holds.seen != Some(wanted_by) {
            holds.seen = None;
        }
        let tells = wanted_by.is_some() && hinted.told != wanted_by;
        hinted.told = wanted_by;
        hinted.since = wanted_by.map(|_| hinted.since.unwrap_or(now.mono));
        if tells {
            self.look_again(bond, now);
        }
        tells
    }

    /// The next holds that are to be looked at again, at most so many: what was told of them is
    /// told once more.
    pub fn take_due(&mut self, now: Now, most: usize) -> Vec<Bond> {
        let due = self.due.at(now.mono, most);
        for bond in &due {
            if let Some(hinted) = self.look_again(bond, now) {
                hinted.told = None;
            }
        }
        due
    }

    fn look_again(&mut self, bond: &Bond, now: Now) -> Option<&mut Hinted> {
        let hinted = self.keys.get_mut(&bond.0)?.by_owner.get_mut(&bond.1)?;
        let was = std::mem::replace(&mut hinted.next, now.until(hinted.every));
        self.due.change(bond, Some(was), Some(hinted.next));
        Some(hinted)
    }

    /// Whether it stands before all others that want to know of their holds on its key.
    pub fn is_first(&self, (key, owner): &Bond) -> bool {
        let holds = self.keys.get(key);
        let first = holds.and_then(|holds| holds.by_owner.first_key_value());
        first.is_some_and(|(first, _)| first == owner)
    }

    /// When something is to be looked at.
    pub fn next(&self) -> Option<MonoUs> {
        if self.is_stirred() {
            return Some(MonoUs::default());
        }
        self.due.first()
    }

    /// Since when an owner's holds are wanted, if it is told of that.
    pub fn since(&self, key: &Key, owner: &[u8]) -> Option<MonoUs> {
        self.keys.get(key)?.by_owner.get(owner)?.since
    }

    fn get_mut(&mut self, key: &Key, owner: &[u8]) -> Option<&mut Hinted> {
        self.keys.get_mut(key)?.by_owner.get_mut(owner)
    }

    /// For whom it was told last of an owner's holds, and who was first when it was looked at all.
    #[cfg(test)]
    pub fn told_and_seen(&self, key: &Key, owner: &[u8]) -> [Option<Next>; 2] {
        let holds = self.keys.get(key);
        let hinted = holds.and_then(|holds| holds.by_owner.get(owner));
        [
            hinted.and_then(|hinted| hinted.told),
            holds.and_then(|holds| holds.seen).flatten(),
        ]
    }

    /// Asserts that it is told of these holds.
    #[cfg(test)]
    pub fn check(&self, of: &BTreeSet<Bond>) {
        let bonds = self.keys.iter().flat_map(|(key, holds)| {
            let owners = holds.by_owner.keys();
            owners.map(|owner| (key.clone(), owner.clone()))
        });
        assert_eq!(bonds.collect::<BTreeSet<Bond>>(), *of);
        assert_eq!(self.due.len(), of.len());
        assert!(self.stirred.iter().all(|key| self.keys.contains_key(key)));
    }
}

fn third(lease: i64) -> i64 {
    (lease / 3).max(1)
}
