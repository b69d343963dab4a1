//! The known holders of a read/write lock.

use std::collections::{BTreeMap, BTreeSet};

use super::hold::{Hold, Party};
use crate::lock::{Lease, Owner, WallMs};

/// The known holders of a read/write lock.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    parties: BTreeMap<Owner, Party>,
    /// The leases of readers: by when they end, then those without an end, and then
    /// those of which there is no news.
    leases: BTreeSet<(Lease, Owner)>,
    writer: Option<Owner>,
    /// The fields of the hash that the parties account for.
    fields: usize,
    /// When the hash itself ends.
    pub expires: Option<WallMs>,
}

impl Shared {
    pub fn party(&self, owner: &[u8]) -> Option<&Party> {
        self.parties.get(owner)
    }

    pub(super) fn hold_mut(&mut self, owner: &[u8]) -> Option<&mut Hold> {
        self.parties.get_mut(owner).map(|party| &mut party.hold)
    }

    pub fn parties(&self) -> impl Iterator<Item = &Party> {
        self.parties.values()
    }

    pub fn writer(&self) -> Option<&Owner> {
        self.writer.as_ref()
    }

    pub fn fields(&self) -> usize {
        self.fields
    }

    pub fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }

    /// Puts a party in the place of what was known of its owner.
    pub fn put(&mut self, party: Party) {
        let owner = party.hold.owner.clone();
        self.remove(&owner);
        if party.lease != Lease::Gone {
            self.leases.insert((party.lease, owner.clone()));
        }
        if party.writes {
            self.writer = Some(owner.clone());
        }
        self.fields = self.fields.saturating_add(party.fields());
        self.parties.insert(owner, party);
    }

    pub fn remove(&mut self, owner: &[u8]) -> Option<Party> {
        let party = self.parties.remove(owner)?;
        self.leases.remove(&(party.lease, party.hold.owner.clone()));
        if self.writer.as_deref() == Some(owner) {
            // Somebody's hand can have made two.
            let mut others = self.parties.values();
            let other = others.find(|party| party.writes);
            self.writer = other.map(|party| party.hold.owner.clone());
        }
        self.fields = self.fields.saturating_sub(party.fields());
        Some(party)
    }

    /// Changes what is known of an owner. It is given back if that leaves it
    /// without holds.
    pub fn change(&mut self, owner: &[u8], change: impl FnOnce(&mut Party)) -> Option<Party> {
        let mut party = self.remove(owner)?;
        change(&mut party);
        if party.reads || party.writes {
            self.put(party);
            return None;
        }
        Some(party)
    }

    /// One that is not this owner: the writer, or the reader that stays longest.
    pub fn other_than(&self, owner: &[u8]) -> Option<Owner> {
        let writer = self.writer.iter();
        let longest = self.leases.iter().rev().map(|(_, reader)| reader).take(2);
        let rest = self.parties.keys().take(2);
        let mut all = writer.chain(longest).chain(rest);
        all.find(|other| ***other != *owner).cloned()
    }

    /// Of some reader it is not known whether it lives.
    pub fn is_half(&self) -> bool {
        matches!(self.leases.last(), Some((Lease::Away, _)))
    }

    /// The latest end of a reader's lease; `None` where one has no end or none that is
    /// known, or where there is no reader.
    pub fn last_end(&self) -> Option<WallMs> {
        self.leases.last()?.0.end()
    }

    /// The earliest moment at which something here ends.
    pub fn first_end(&self) -> Option<WallMs> {
        let first = self.leases.first().and_then(|(lease, _)| lease.end());
        [first, self.expires].into_iter().flatten().min()
    }

    /// The readers whose lease ended before this.
    pub fn over(&self, now: WallMs) -> Vec<Owner> {
        let all = self.leases.iter();
        let over = all.take_while(|(lease, _)| *lease < Lease::Until(now));
        over.map(|(_, owner)| owner.clone()).collect()
    }

    /// Asserts that the indexes are those of the parties.
    #[cfg(test)]
    pub fn check(&self) {
        let mut made = Self {
            expires: self.expires,
            ..Self::default()
        };
        for (owner, party) in &self.parties {
            assert_eq!(party.hold.owner, *owner);
            assert!(party.reads || party.writes, "{owner:?} holds nothing");
            made.put(party.clone());
        }
        assert_eq!(self.leases, made.leases);
        assert_eq!(self.fields, made.fields);
        let writes = |owner: &Owner| self.parties.get(owner).is_some_and(|party| party.writes);
        assert_eq!(self.writer.is_some(), made.writer.is_some());
        assert!(self.writer.as_ref().is_none_or(writes));
    }
}
