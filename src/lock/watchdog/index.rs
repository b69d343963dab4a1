//! The indexes of watched holds: by connection, and by when they are to be renewed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::lapsed::Lapsed;
use crate::lock::deadlines::Deadlines;
use crate::lock::table::{Locks, Watch};
use crate::lock::{ClientId, Key, MonoUs, Now, Owner, WallMs};

/// Where nobody tells of overwritten keys, watched ones are looked at every so many ms,
pub const ROUND_MS: i64 = 100;

/// at most so many in one go.
const CHECKED: usize = 500;

/// An owner's lease on a key.
pub type Bond = (Key, Owner);

/// What the indexes have of a watch.
#[derive(Default)]
pub struct Indexed {
    next: Option<WallMs>,
    pub clients: BTreeSet<ClientId>,
}

impl Indexed {
    pub fn of(watch: Option<&Watch>) -> Self {
        watch.map_or_else(Self::default, |watch| Self {
            next: watch.next,
            clients: watch.clients(),
        })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Watchdogs {
    /// When watched leases are renewed.
    renewals: Deadlines<WallMs, Bond>,
    /// The connections that have watchdog holds.
    bonds: BTreeMap<ClientId, BTreeSet<Bond>>,
    pub(super) lapsed: Lapsed,
    /// When watched keys were last looked at without being told to,
    round_at: MonoUs,
    /// and which of them was the last.
    round_behind: Option<(ClientId, Bond)>,
}

impl Watchdogs {
    /// Whether any hold belongs to a connection.
    pub fn is_empty(&self) -> bool {
        self.bonds.is_empty()
    }

    /// Whether the connection has watchdog holds.
    pub fn has(&self, client: ClientId) -> bool {
        self.bonds.contains_key(&client)
    }

    /// The connections that have some.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.bonds.keys().copied()
    }

    /// What a connection watches.
    pub fn of_client(&self, client: ClientId) -> impl Iterator<Item = &Bond> {
        self.bonds.get(&client).into_iter().flatten()
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
        for client in was.clients.difference(&is.clients) {
            if let Some(bonds) = self.bonds.get_mut(client) {
                bonds.remove(bond);
                if bonds.is_empty() {
                    self.bonds.remove(client);
                }
            }
        }
        for client in is.clients.difference(&was.clients) {
            let bonds = self.bonds.entry(*client).or_default();
            bonds.insert(bond.clone());
        }
    }

    /// Forgets all that is watched on these keys: it, and the connections. In one pass,
    /// for there may be very many.
    pub(super) fn forget(&mut self, keys: impl Fn(&Key) -> bool) -> (Vec<Bond>, Vec<ClientId>) {
        let (mut forgotten, mut clients) = (Vec::new(), Vec::new());
        self.bonds.retain(|client, bonds| {
            let before = bonds.len();
            bonds.retain(|bond| {
                let stays = !keys(&bond.0);
                if !stays {
                    forgotten.push(bond.clone());
                }
                stays
            });
            if bonds.len() < before {
                clients.push(*client);
            }
            !bonds.is_empty()
        });
        self.renewals.retain(|(key, _)| !keys(key));
        (forgotten, clients)
    }

    /// Whether watched keys are to be looked at.
    pub fn is_round_due(&self, now: Now) -> bool {
        !self.is_empty() && now.mono.ms_since(self.round_at) >= ROUND_MS
    }

    /// The next of them, in a round over all.
    pub fn go_on_round(&mut self, now: Now) -> Vec<Key> {
        self.round_at = now.mono;
        let next = self.behind(self.round_behind.as_ref(), CHECKED);
        self.round_behind = next.last().cloned();
        next.into_iter().map(|(_, (key, _))| key).collect()
    }

    /// So many bonds with their connections, those behind this one first.
    fn behind(&self, behind: Option<&(ClientId, Bond)>, most: usize) -> Vec<(ClientId, Bond)> {
        let of = |(client, bonds): (&ClientId, &BTreeSet<Bond>)| {
            let client = *client;
            let bonds: Vec<Bond> = bonds.iter().take(most).cloned().collect();
            bonds.into_iter().map(move |bond| (client, bond))
        };
        let Some((client, bond)) = behind else {
            return self.bonds.iter().flat_map(of).take(most).collect();
        };
        let own = self.bonds.get(client).into_iter().flat_map(|bonds| {
            let rest = bonds.range((Bound::Excluded(bond), Bound::Unbounded));
            rest.map(|bond| (*client, bond.clone()))
        });
        let later = (Bound::Excluded(client), Bound::Unbounded);
        let later = self.bonds.range(later).flat_map(of);
        let sooner = self.bonds.range(..=client).flat_map(of);
        let sooner = sooner.take_while(|bond| Some(bond) <= behind);
        own.chain(later).chain(sooner).take(most).collect()
    }

    /// How many holds belong to connections.
    pub fn count(&self, locks: &Locks) -> u64 {
        let watch = |(key, owner): &Bond| locks.hold(key, owner)?.watch.as_ref();
        let of =
            |client: ClientId, bond: &Bond| watch(bond).map_or(0, |watch| watch.watched_by(client));
        let bonds = self.bonds.iter();
        let counts = bonds.flat_map(|(client, bonds)| bonds.iter().map(|bond| of(*client, bond)));
        let all = counts.fold(0_i64, i64::saturating_add);
        u64::try_from(all).unwrap_or(0)
    }

    /// Asserts that the indexes are those of the watches.
    #[cfg(test)]
    pub fn check(&self, locks: &Locks) {
        let watch = |(key, owner): &Bond| locks.hold(key, owner)?.watch.as_ref();
        for (client, bonds) in &self.bonds {
            for bond in bonds {
                let clients = watch(bond).map(|watch| watch.clients());
                assert!(clients.is_some_and(|all| all.contains(client)), "{bond:?}");
            }
        }
        let mut due = 0;
        for key in locks.keys() {
            for hold in locks.get(&key).into_iter().flat_map(|entry| entry.holds()) {
                let Some(watch) = &hold.watch else { continue };
                let bond = (key.clone(), hold.owner.clone());
                due += usize::from(watch.next.is_some());
                for client in watch.clients() {
                    assert!(self.bonds[&client].contains(&bond), "{bond:?}");
                }
            }
        }
        assert_eq!(self.renewals.len(), due);
    }
}
