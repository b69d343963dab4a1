//! The indexes of watched holds: by connection, and by when they are to be renewed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::hints::{Bond, Hints};
use crate::lock::deadlines::Deadlines;
use crate::lock::key::Bytes;
use crate::lock::table::Watch;
#[cfg(test)]
use crate::lock::table::{Locks, Taken};
use crate::lock::{ClientId, Key, MonoUs, Now, Owner, WallMs};

/// Where nobody tells of overwritten keys, watched ones are looked at every so many ms,
pub const ROUND_MS: i64 = 100;

/// at most so many in one go.
const CHECKED: usize = 500;

/// What the indexes have of a watch.
#[derive(Debug, Default)]
pub struct Indexed {
    next: Option<WallMs>,
    /// In order.
    clients: Vec<ClientId>,
    /// How many holds are kept by a watchdog.
    holds: i64,
    /// It is told somewhere that they are wanted.
    is_hinted: bool,
}

impl Indexed {
    pub fn of(watch: Option<&Watch>) -> Self {
        watch.map_or_else(Self::default, |watch| Self {
            next: watch.next,
            clients: watch.taken.clients().collect(),
            holds: watch.watched(),
            is_hinted: watch.taken.any_hinted(),
        })
    }

    /// The connections to which something is bound that is not in the other.
    fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = ClientId> + use<'a> {
        let not_there = |client: &&ClientId| other.clients.binary_search(client).is_err();
        self.clients.iter().filter(not_there).copied()
    }
}

/// How far it was looked for leases that ran out behind the gate, since something was
/// last written.
#[derive(Clone, Debug, Default)]
pub struct Lapsed {
    /// The leases of each database were gone through up to here.
    pub upto: BTreeMap<i32, (WallMs, Bytes)>,
    /// What is watched on the locks that it has, by when it ends: readers of one
    /// lock end one by one.
    pub ends: BTreeSet<(WallMs, Key, Owner)>,
}

#[derive(Clone, Debug, Default)]
pub struct Watchdogs {
    /// When watched leases are renewed.
    renewals: Deadlines<WallMs, Bond>,
    /// To which connections holds are bound, by WATCHDOG or by NOTIFY, and where.
    bonds: BTreeSet<(ClientId, Bond)>,
    /// How many holds belong to connections.
    holds: i64,
    pub(super) lapsed: Lapsed,
    /// Which of them are wanted, for those who are to know.
    pub hints: Hints,
    /// When watched keys were last looked at without being told to,
    round_at: MonoUs,
    /// and which of them was the last.
    round_behind: Option<(ClientId, Bond)>,
}

impl Watchdogs {
    /// Whether any hold is bound to a connection.
    pub fn is_empty(&self) -> bool {
        self.bonds.is_empty()
    }

    /// Whether any is bound to this one.
    pub fn has(&self, client: ClientId) -> bool {
        !self.is_empty() && self.of_client(client).next().is_some()
    }

    /// What is bound to a connection.
    pub fn of_client(&self, client: ClientId) -> impl Iterator<Item = &Bond> {
        let from = self.bonds.range((client, Bond::default())..);
        let its = from.take_while(move |(other, _)| *other == client);
        its.map(|(_, bond)| bond)
    }

    /// What is bound to a connection next after this, which need not be.
    pub fn next_of(&self, client: ClientId, behind: Option<Bond>) -> Option<&Bond> {
        let from = match behind {
            Some(bond) => Bound::Excluded((client, bond)),
            None => Bound::Included((client, Bond::default())),
        };
        let mut later = self.bonds.range((from, Bound::Unbounded));
        let next = later.next().filter(|(other, _)| *other == client);
        next.map(|(_, bond)| bond)
    }

    /// The watched leases that are to be renewed now, at most so many.
    pub fn due(&self, now: Now, most: usize) -> Vec<Bond> {
        self.renewals.at(now.wall_ms(), most)
    }

    /// When the first renewal is due.
    pub fn next_renewal(&self) -> Option<WallMs> {
        self.renewals.first()
    }

    /// A watch was this, and is that now.
    pub(super) fn change(&mut self, bond: &Bond, was: &Indexed, is: &Indexed) {
        self.renewals.change(bond, was.next, is.next);
        self.fewer(was.holds.saturating_sub(is.holds));
        if was.is_hinted && !is.is_hinted {
            self.hints.forget(bond);
        }
        for client in was.without(is) {
            let was = self.bonds.remove(&(client, bond.clone()));
            debug_assert!(was, "a watch that is known is in the index");
        }
        for client in is.without(was) {
            let new = self.bonds.insert((client, bond.clone()));
            debug_assert!(new, "a watch that begins is not in the index");
        }
    }

    /// Forgets these bonds. In one pass, for there may be very many.
    pub(super) fn forget(&mut self, which: impl Fn(&Bond) -> bool) -> Vec<Bond> {
        self.renewals.retain(|bond| !which(bond));
        let theirs = self.bonds.extract_if(.., |(_, bond)| which(bond));
        let theirs: Vec<Bond> = theirs.map(|(_, bond)| bond).collect();
        theirs.iter().for_each(|bond| self.hints.forget(bond));
        theirs
    }

    /// Whether watched keys are to be looked at.
    pub fn is_round_due(&self, now: Now) -> bool {
        !self.is_empty() && now.mono.ms_since(self.round_at) >= ROUND_MS
    }

    /// The next of them, in a round over all.
    pub fn go_on_round(&mut self, now: Now) -> Vec<Bond> {
        self.round_at = now.mono;
        let last = self.round_behind.take();
        let behind = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.bonds.range((behind, Bound::Unbounded));
        let sooner = last.iter().flat_map(|last| self.bonds.range(..=last));
        let next: Vec<_> = later.chain(sooner).take(CHECKED).collect();
        self.round_behind = next.last().cloned().cloned();
        next.into_iter().map(|(_, bond)| bond.clone()).collect()
    }

    /// So many holds do not belong to a connection any more.
    pub(super) fn fewer(&mut self, holds: i64) {
        self.holds = self.holds.saturating_sub(holds);
    }

    /// Whether any hold belongs to a connection.
    pub fn any(&self) -> bool {
        self.holds > 0
    }

    /// How many holds belong to connections.
    pub fn count(&self) -> u64 {
        u64::try_from(self.holds).unwrap_or(0)
    }

    /// Asserts that the indexes are those of the watches.
    #[cfg(test)]
    pub fn check(&self, locks: &Locks) {
        let keys = locks.keys();
        let entries = keys.iter().filter_map(|key| Some((key, locks.get(key)?)));
        let holds = entries.flat_map(|(key, entry)| entry.holds().map(move |hold| (key, hold)));
        let (mut due, mut holds_of_watchdogs) = (0, 0);
        let (mut bonds, mut hinted) = (BTreeSet::new(), BTreeSet::new());
        for (key, hold) in holds.chain(locks.ending()) {
            let Some(watch) = &hold.watch else { continue };
            let bond = (key.clone(), hold.owner.clone());
            due += usize::from(watch.next.is_some());
            holds_of_watchdogs += watch.watched();
            let hints = watch.taken.iter().filter_map(Taken::hinted_at);
            hinted.extend(hints.map(|_| bond.clone()));
            for client in watch.taken.clients() {
                assert!(bonds.insert((client, bond.clone())), "{bond:?} is twice");
            }
        }
        assert_eq!(self.bonds, bonds);
        assert_eq!(self.renewals.len(), due);
        assert_eq!(self.holds, holds_of_watchdogs);
        self.hints.check(&hinted);
    }
}
