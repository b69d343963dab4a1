//! What is known of a read/write lock after all its fields were read: a pure function.

use std::collections::BTreeMap;

use super::known::{is_left_over, lease_now};
use crate::lock::found::Holder;
use crate::lock::table::{Entry, Hold, Shared};
use crate::lock::{Lease, Look, Mode, Now, Owner};

/// Who holds it now, and what became of those who were known to.
#[derive(Debug, Default)]
pub struct Merged {
    pub shared: Shared,
    /// They hold it, in a mode in which they were not known to.
    pub joined: Vec<Owner>,
    /// They hold it still, but not in this mode.
    pub fewer: Vec<(Owner, Mode)>,
    pub vanished: Vec<Hold>,
    /// Readers whose lease is over.
    pub dead: Vec<Owner>,
    /// The plain hold that was known beside them is not there any more.
    pub plain_is_gone: bool,
}

/// Merges what is known with the holders that were found.
pub fn merge(known: Option<&Entry>, holders: Vec<Holder>, found: &Look, now: Now) -> Merged {
    let mut merged = Merged {
        plain_is_gone: known.is_some_and(|entry| entry.plain().is_some()),
        ..Merged::default()
    };
    let mut holds: BTreeMap<Owner, Hold> = BTreeMap::new();
    for holder in holders {
        let owner = holder.owner;
        if holder.mode == Mode::Read && is_left_over(known, &owner, holder.lease) {
            merged.plain_is_gone = false;
            continue;
        }
        let new = || Hold::of(owner.clone());
        let hold = holds.entry(owner.clone()).or_insert_with(new);
        if holder.mode == Mode::Write {
            hold.writes = true;
            continue;
        }
        hold.reads = true;
        hold.lease = lease_now(known, &owner, holder.lease, now);
        hold.holds = holder.holds;
        if hold.lease == Lease::Gone {
            merged.dead.push(owner);
        }
    }
    let old = known.and_then(Entry::shared);
    for was in old.iter().flat_map(|shared| shared.holds()) {
        let owner = &was.owner;
        let Some(hold) = holds.get_mut(owner) else {
            merged.vanished.push(was.clone());
            continue;
        };
        hold.go_on(was);
        if hold.reads && hold.lease == Lease::Gone {
            hold.lease = was.lease;
        }
        for mode in [Mode::Read, Mode::Write] {
            if was.has(mode) && !hold.has(mode) {
                merged.fewer.push((owner.clone(), mode));
            }
        }
    }
    merged.shared.expires = found.expires;
    for (owner, hold) in holds {
        let was = old.and_then(|shared| shared.hold(&owner));
        let new = |mode| hold.has(mode) && !was.is_some_and(|was| was.has(mode));
        if new(Mode::Read) || new(Mode::Write) {
            merged.joined.push(owner);
        }
        merged.shared.put(hold);
    }
    merged
}
