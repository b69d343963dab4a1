//! Locks that the module judges by what it remembers of them, where the library, and
//! the module after a restart, has only their keys to go by. They come about by
//! somebody's hand alone, and the test sets such a lock right at once, by a DEL.

use std::collections::{BTreeMap, BTreeSet};

use super::pools;
use super::snapshot::{is_count, lease_keys, Content, Item, Snapshot};
use super::step::Bytes;

/// The locks that are to be set right after a foreign command.
pub fn judged_by_memory(now: [&Snapshot; 2], before: &Snapshot) -> Vec<Bytes> {
    let pools = now.into_iter().flat_map(|now| wrong_pools(now, before));
    let [now, _] = now;
    let locks = now.0.iter().filter_map(|(name, item)| {
        let had = before.0.get(name);
        if has_lost_its_ttl(item, had) {
            return Some(name.clone());
        }
        let lock = Lock {
            name,
            item,
            fields: item.shared()?,
            before: had,
            keys: now,
        };
        lock.is_judged_by_memory().then(|| name.clone())
    });
    let all: BTreeSet<Bytes> = locks.chain(pools).collect();
    all.into_iter().collect()
}

/// The locks with permits of which the module reads all fields when it sees a change, and
/// the library when it needs them: one is no permit, or more are held than are out. And
/// those of which the module knows an owner that has less by now.
fn wrong_pools(now: &Snapshot, before: &Snapshot) -> Vec<Bytes> {
    let pools = now.0.iter().filter(|(name, item)| {
        let had = before.0.get(*name);
        let was_another = || had.is_some_and(|item| item.pool().is_none());
        let is_unheard = |fields| {
            let had = had.and_then(Item::pool);
            had.is_some_and(|had| pools::is_unheard(had, fields))
        };
        let is_wrong =
            |fields| !pools::is_whole(fields) || pools::is_short(fields) || pools::is_bare(fields);
        let pool = item.pool();
        pool.is_some_and(|fields| is_wrong(fields) || is_unheard(fields) || was_another())
    });
    pools.map(|(name, _)| name.clone()).collect()
}

/// The module knows for a lock what the library takes for somebody's data.
fn has_lost_its_ttl(item: &Item, before: Option<&Item>) -> bool {
    let is_hash = |item: &Item| matches!(item.content, Content::Fields(_));
    let had = before.filter(|before| is_hash(before));
    is_hash(item) && item.ends.is_none() && had.is_some_and(|had| had.ends.is_some())
}

/// A read/write lock, as far as `mode` tells.
struct Lock<'a> {
    name: &'a Bytes,
    item: &'a Item,
    fields: &'a BTreeMap<Bytes, Bytes>,
    before: Option<&'a Item>,
    keys: &'a Snapshot,
}

impl<'a> Lock<'a> {
    fn is_judged_by_memory(&self) -> bool {
        self.is_bare()
            || self.was_another()
            || self.is_spoiled()
            || self.has_two_writers()
            || self.holders().any(|holder| self.is_uneven(holder))
    }

    fn holders(&self) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> + use<'a> {
        self.fields.iter().filter(|(owner, _)| *owner != b"mode")
    }

    fn lives(&self, (field, holds): (&Bytes, &Bytes)) -> bool {
        field.ends_with(b":write") || self.keys.lives(self.name, field, holds)
    }

    /// Nobody holds it, and it has no TTL, or no field but `mode`: what is left of a
    /// lock that was known, or else somebody's data.
    fn is_bare(&self) -> bool {
        let held = self.holders().any(|holder| self.lives(holder));
        !held && (self.item.ends.is_none() || self.fields.len() == 1)
    }

    /// It was made of a hash that was no lock, or has the field of a reader that never
    /// lived. Whoever knows of a plain hold takes such a field for an exclusive one,
    /// others for a dead reader.
    fn was_another(&self) -> bool {
        let Some(before) = self.before else {
            return self.holders().any(|holder| !self.lives(holder));
        };
        let Content::Fields(had) = &before.content else {
            return false;
        };
        let still_born =
            |holder: (&Bytes, &Bytes)| !self.lives(holder) && !had.contains_key(holder.0);
        (before.shared().is_none() && !had.is_empty()) || self.holders().any(still_born)
    }

    /// The one lengthens the lock, and with it the other's hold, without a word.
    fn has_two_writers(&self) -> bool {
        let writes = |(field, _): &(&Bytes, &Bytes)| field.ends_with(b":write");
        self.holders().filter(writes).count() > 1
    }

    /// A reader's leases end at different times, or some are gone: the module does not
    /// hear of every change of a lease key.
    fn is_uneven(&self, (owner, holds): (&Bytes, &Bytes)) -> bool {
        let leases: Vec<_> = self.keys.leases(self.name, owner, holds).collect();
        let all = leases.len() == lease_keys(self.name, owner, holds).count();
        !leases.is_empty() && (!all || leases.iter().any(|end| *end != leases[0]))
    }

    /// A field of a known lock counts nothing any more: the module looks at the
    /// caller's fields alone as long as there are as many as it knew.
    fn is_spoiled(&self) -> bool {
        let was_shared = self.before.and_then(Item::shared).is_some();
        was_shared && !self.holders().all(|(_, holds)| is_count(holds))
    }
}
