//! The known holders of a lock that several may hold.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::hold::Hold;
use crate::lock::{Lease, Mode, Owner, Pool, Token, WakeTarget, WallMs, WallUs};

/// Of which kind a lock is that several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedKind {
    #[default]
    ReadWrite,
    /// With what its field `mode` said when last seen.
    Permits(Pool),
}

/// What became of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Begins,
    Ends,
}

/// A hold, found by its owner's name. There may be very many, so the name is not kept twice,
/// nor room for those who are not there.
#[derive(Clone, Debug)]
struct Named(Box<Hold>);

impl Named {
    fn name(&self) -> &[u8] {
        &self.0.owner
    }
}

impl Borrow<[u8]> for Named {
    fn borrow(&self) -> &[u8] {
        self.name()
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Named {}

/// When a lease ends, in the order of leases: half as wide as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends(i64);

impl Ends {
    const AWAY: Self = Self(i64::MAX);
    const ENDLESS: Self = Self(i64::MAX - 1);

    /// The moment, if there is one.
    fn at(self) -> Option<WallMs> {
        (self < Self::ENDLESS).then_some(WallMs(self.0))
    }
}

impl From<Lease> for Ends {
    fn from(lease: Lease) -> Self {
        match lease {
            Lease::Gone => Self(i64::MIN),
            Lease::Until(at) => Self(at.0.min(Self::ENDLESS.0.saturating_sub(1))),
            Lease::Endless => Self::ENDLESS,
            Lease::Migrating => Self::AWAY,
        }
    }
}

/// Of so many holders all that is to be done is done at once.
const AT_ONCE: usize = 256;

/// The known holders of a read/write lock, or of one with permits.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    holds: BTreeSet<Named>,
    /// The leases of readers and of permits: by when they end, then those without an end, and then
    /// those of which there is no news.
    leases: BTreeSet<(Ends, Owner)>,
    writer: Option<Owner>,
    /// The fields of the hash that the holds account for.
    fields: usize,
    /// So many permits they have,
    permits: i64,
    /// and so many of these those who wait for the lock too.
    stuck: i64,
    /// Since when holds have been that began or ended, and which of these it was: what the
    /// table has not counted yet.
    changes: Vec<(WallUs, Change)>,
    /// When the hash itself ends.
    pub expires: Option<WallMs>,
    pub kind: SharedKind,
}

impl Shared {
    pub fn hold(&self, owner: &[u8]) -> Option<&Hold> {
        self.holds.get(owner).map(|named| &*named.0)
    }

    /// Changes what is known of an owner's hold. The lock does not end by that.
    pub(super) fn change_hold<T>(
        &mut self,
        owner: &[u8],
        change: impl FnOnce(&mut Hold) -> T,
    ) -> Option<T> {
        let mut named = self.holds.take(owner)?;
        let result = change(&mut named.0);
        self.holds.insert(named);
        Some(result)
    }

    /// An owner was told this token for what it holds in this mode.
    pub(super) fn given(&mut self, owner: &[u8], mode: Mode, token: Token) {
        if let Some(mut named) = self.holds.take(owner) {
            named.0.given(mode, token);
            self.holds.insert(named);
        }
    }

    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.iter().map(|named| &*named.0)
    }

    /// Those behind this owner, in order.
    pub fn holds_behind<'a>(
        &'a self,
        owner: Option<&[u8]>,
    ) -> impl Iterator<Item = &'a Hold> + use<'a> {
        let from = owner.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.holds.range::<[u8], _>((from, Bound::Unbounded));
        behind.map(|named| &*named.0)
    }

    pub fn writer(&self) -> Option<&Owner> {
        self.writer.as_ref()
    }

    pub fn fields(&self) -> usize {
        self.fields
    }

    /// Of a lock with permits: what its field `mode` said when last seen.
    pub fn pool(&self) -> Option<Pool> {
        match self.kind {
            SharedKind::Permits(pool) => Some(pool),
            SharedKind::ReadWrite => None,
        }
    }

    /// It has permits, and its field `mode` says this.
    pub fn set_pool(&mut self, pool: Pool) {
        self.kind = SharedKind::Permits(pool);
    }

    /// How many permits are known to be out.
    pub fn permits(&self) -> i64 {
        self.permits
    }

    /// How many of them cannot come back before somebody here has more.
    pub fn stuck(&self) -> i64 {
        self.stuck
    }

    /// Whom its end wakes.
    pub fn whom(&self) -> WakeTarget {
        match (self.kind, &self.writer) {
            (SharedKind::Permits(_), _) => WakeTarget::One,
            (SharedKind::ReadWrite, None) => WakeTarget::OneShared,
            (SharedKind::ReadWrite, Some(_)) => WakeTarget::AllShared,
        }
    }

    /// Whether there are so many that nothing is done for all of them at once.
    pub fn are_many(&self) -> bool {
        self.holds.len() > AT_ONCE
    }

    /// Takes away one of the holds, whose holds are over with the lock.
    pub(super) fn pop(&mut self) -> Option<Hold> {
        // The leases say nothing any more, and all of them at once would be a stall.
        self.leases.pop_first();
        self.holds.pop_first().map(|named| *named.0)
    }

    /// Takes away this one so.
    pub(super) fn take(&mut self, owner: &[u8]) -> Option<Hold> {
        self.leases.pop_first();
        self.holds.take(owner).map(|named| *named.0)
    }

    pub fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    /// Puts a hold in the place of what was known of its owner.
    pub fn put(&mut self, hold: Hold) {
        let owner = hold.owner.clone();
        self.remove(&owner);
        if hold.lease != Lease::Gone {
            self.leases.insert((hold.lease.into(), owner.clone()));
        }
        if hold.writes {
            self.writer = Some(owner.clone());
        }
        self.fields = self.fields.saturating_add(hold.fields());
        self.permits = self.permits.saturating_add(hold.permits());
        if hold.waits {
            self.stuck = self.stuck.saturating_add(hold.permits());
        }
        if let Some(since) = hold.since() {
            // As a rule it was taken out for a moment only.
            match self.changes.last() {
                Some(last) if *last == (since, Change::Ends) => drop(self.changes.pop()),
                _ => self.changes.push((since, Change::Begins)),
            }
        }
        self.holds.insert(Named(Box::new(hold)));
    }

    pub fn remove(&mut self, owner: &[u8]) -> Option<Hold> {
        let hold = *self.holds.take(owner)?.0;
        let lease = (hold.lease.into(), hold.owner.clone());
        self.leases.remove(&lease);
        if self.writer.as_deref() == Some(owner) {
            // Somebody's hand can have made two.
            let other = self.holds().find(|hold| hold.writes);
            let other = other.map(|hold| hold.owner.clone());
            self.writer = other;
        }
        self.fields = self.fields.saturating_sub(hold.fields());
        self.permits = self.permits.saturating_sub(hold.permits());
        if hold.waits {
            self.stuck = self.stuck.saturating_sub(hold.permits());
        }
        let ended = hold.since().map(|since| (since, Change::Ends));
        self.changes.extend(ended);
        Some(hold)
    }

    /// All that is known is this from now on.
    pub(super) fn replace(&mut self, new: Self) {
        let mut changes = std::mem::take(&mut self.changes);
        let only_in = |one: &Self, other: &Self, change| {
            let there = |hold: &Hold| other.hold(&hold.owner)?.since();
            let news = one.holds().filter(|hold| there(hold) != hold.since());
            let since = news.filter_map(|hold| hold.since());
            since.map(|since| (since, change)).collect::<Vec<_>>()
        };
        changes.extend(only_in(self, &new, Change::Ends));
        changes.extend(only_in(&new, self, Change::Begins));
        *self = Self { changes, ..new };
    }

    /// What is to be counted.
    pub(super) fn take_changes(&mut self) -> Vec<(WallUs, Change)> {
        std::mem::take(&mut self.changes)
    }

    /// Changes what is known of an owner. It is given back if that leaves it
    /// without holds.
    pub fn change(&mut self, owner: &[u8], change: impl FnOnce(&mut Hold)) -> Option<Hold> {
        let mut hold = self.remove(owner)?;
        change(&mut hold);
        if hold.is_holder() {
            self.put(hold);
            return None;
        }
        Some(hold)
    }

    /// One that is not this owner: the writer, or the reader that stays longest.
    pub fn other_than(&self, owner: &[u8]) -> Option<Owner> {
        let writer = self.writer.iter();
        let longest = self.leases.iter().rev().map(|(_, reader)| reader).take(2);
        let rest = self.holds().map(|hold| &hold.owner).take(2);
        let mut all = writer.chain(longest).chain(rest);
        all.find(|other| ***other != *owner).cloned()
    }

    /// Of some reader it is not known whether it lives.
    pub fn is_half(&self) -> bool {
        self.leases
            .last()
            .is_some_and(|(ends, _)| *ends == Ends::AWAY)
    }

    /// The latest end of a reader's lease; `None` where one has no end or none that is
    /// known, or where there is no reader.
    pub fn last_end(&self) -> Option<WallMs> {
        self.leases.last()?.0.at()
    }

    /// The earliest moment at which something here ends.
    pub fn first_end(&self) -> Option<WallMs> {
        let first = self.leases.first().and_then(|(ends, _)| ends.at());
        [first, self.expires].into_iter().flatten().min()
    }

    /// Those whose own lease ended before this, at most so many.
    pub fn over(&self, now: WallMs, most: usize) -> Vec<Owner> {
        let all = self.leases.iter();
        let over = all.take_while(|(ends, _)| *ends < Ends::from(Lease::Until(now)));
        over.take(most).map(|(_, owner)| owner.clone()).collect()
    }

    /// Asserts that of a lock that ends nothing is left but its holds.
    #[cfg(test)]
    pub(super) fn check_ending(&self) {
        assert!(self.leases.len() <= self.holds.len(), "kept to the end");
    }

    /// Asserts that the indexes are those of the holds.
    #[cfg(test)]
    pub fn check(&self) {
        assert_eq!(self.changes, [], "all is counted");
        let mut made = Self {
            expires: self.expires,
            ..Self::default()
        };
        for hold in self.holds() {
            let owner = &hold.owner;
            assert!(hold.is_holder(), "{owner:?} holds nothing");
            assert_eq!(hold.has_permits, self.pool().is_some(), "{owner:?}");
            made.put(hold.clone());
        }
        assert_eq!(self.leases, made.leases);
        assert_eq!(self.fields, made.fields);
        assert_eq!(self.permits, made.permits);
        assert_eq!(self.stuck, made.stuck);
        let writes = |owner: &Owner| self.hold(owner).is_some_and(|hold| hold.writes);
        assert_eq!(self.writer.is_some(), made.writer.is_some());
        assert!(self.writer.as_ref().is_none_or(writes));
    }
}
