//! What is known of a read/write lock after all its fields were read: a pure function.

use std::collections::BTreeMap;

use super::known::{is_left_over, lease_now};
use crate::lock::found::Holder;
use crate::lock::table::{Entry, Party, Shared};
use crate::lock::{Lease, Look, Mode, Now, Owner};

/// Who holds it now, and what became of those who were known to.
#[derive(Debug, Default)]
pub struct Merged {
    pub shared: Shared,
    /// They hold it, in a mode in which they were not known to.
    pub joined: Vec<Owner>,
    /// They hold it still, but not in this mode.
    pub fewer: Vec<(Owner, Mode)>,
    pub vanished: Vec<Party>,
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
    let mut parties: BTreeMap<Owner, Party> = BTreeMap::new();
    for holder in holders {
        let owner = holder.owner;
        if holder.mode == Mode::Read && is_left_over(known, &owner, holder.lease) {
            merged.plain_is_gone = false;
            continue;
        }
        let new = || Party::found(owner.clone());
        let party = parties.entry(owner.clone()).or_insert_with(new);
        if holder.mode == Mode::Write {
            party.writes = true;
            continue;
        }
        party.reads = true;
        party.lease = lease_now(known, &owner, holder.lease, now);
        party.holds = holder.holds;
        if party.lease == Lease::Gone {
            merged.dead.push(owner);
        }
    }
    let old = known.and_then(Entry::shared);
    for was in old.iter().flat_map(|shared| shared.parties()) {
        let owner = &was.hold.owner;
        let Some(party) = parties.get_mut(owner) else {
            merged.vanished.push(was.clone());
            continue;
        };
        party.go_on(was);
        if party.reads && party.lease == Lease::Gone {
            party.lease = was.lease;
        }
        for mode in [Mode::Read, Mode::Write] {
            if was.has(mode) && !party.has(mode) {
                merged.fewer.push((owner.clone(), mode));
            }
        }
    }
    merged.shared.expires = found.expires;
    for (owner, party) in parties {
        let was = old.and_then(|shared| shared.party(&owner));
        let new = |mode| party.has(mode) && !was.is_some_and(|was| was.has(mode));
        if new(Mode::Read) || new(Mode::Write) {
            merged.joined.push(owner);
        }
        merged.shared.put(party);
    }
    merged
}
