//! The bonds between connections and holds: made when a watchdog hold is taken,
//! kept up by renewals, ended with the hold or with the connection.

use super::{release, sight};
use std::collections::BTreeSet;
use std::ops::Bound;

use super::grants::Grant;
use super::table::Hold;
use super::table::{Taken, Watch};
use super::{Bytes, Core, Decision, Effect, Key, Mode, Now};

/// An owner's lease on a key, as the index of renewals has it.
pub type Bond = (Key, Bytes);

impl Core {
    /// An owner has one more hold. `before`: how many it had in each mode;
    /// `lease`: of a watchdog hold of this connection.
    pub(super) fn took(
        &mut self,
        (key, owner): (&Key, &Bytes),
        (client, mode): (u64, Mode),
        before: &[(Mode, i64)],
        lease: Option<i64>,
        now: Now,
    ) {
        let max = self.rules.watchdog_max;
        let end = self.locks.lease_end(key, owner);
        let Some(hold) = self.locks.hold_mut(key, owner) else {
            return;
        };
        let holds = before.iter().map(|(_, holds)| *holds);
        let count = holds.fold(0_i64, i64::saturating_add);
        if count == 0 && lease.is_none() {
            hold.client = client;
            return;
        }
        let first = if count == 1 { hold.client } else { 0 };
        let watch = hold.watch.get_or_insert_with(|| {
            let found = |(mode, holds): &(Mode, i64)| Taken {
                client: first,
                watched: false,
                mode: *mode,
                holds: *holds,
            };
            let there = before.iter().filter(|(_, holds)| *holds > 0);
            Box::new(Watch {
                lease: 0,
                bound: None,
                next: None,
                taken: there.map(found).collect(),
            })
        });
        watch.add(Taken {
            client,
            watched: lease.is_some(),
            mode,
            holds: 1,
        });
        let Some(lease) = lease else {
            return;
        };
        let from = watch.next;
        watch.lease = watch.lease.max(lease);
        watch.bound = (max > 0).then(|| now.deadline(max));
        watch.schedule(now);
        // Not later than it was due, and before the present end: the lease may not
        // have been lengthened.
        let left = end.map(|at| at.saturating_sub(now.wall_ms()).max(0) / 3);
        let in_time = left.map(|ms| now.deadline(ms));
        watch.next = [from, watch.next, in_time].into_iter().flatten().min();
        let to = watch.next;
        self.bind(client, key, owner, from, to);
    }

    fn bind(&mut self, client: u64, key: &Key, owner: &Bytes, from: Option<i64>, to: Option<i64>) {
        let bond = (key.clone(), owner.clone());
        self.renewals.change(&bond, from, to);
        self.bonds.entry(client).or_default().insert(bond);
    }

    fn unbind(&mut self, client: u64, key: &Key, owner: &Bytes) {
        if let Some(bonds) = self.bonds.get_mut(&client) {
            bonds.remove(&(key.clone(), owner.clone()));
            if bonds.is_empty() {
                self.bonds.remove(&client);
            }
        }
    }

    /// An owner has fewer holds in this mode: one, by this connection, or all.
    pub(super) fn dropped(&mut self, key: &Key, owner: &Bytes, mode: Mode, by: Option<u64>) {
        let held = self.locks.hold_mut(key, owner);
        let Some(watch) = held.and_then(|hold| hold.watch.as_mut()) else {
            return;
        };
        let before = watch.clients();
        match by {
            Some(client) => watch.drop_one(mode, client),
            None => watch.taken.retain(|taken| taken.mode != mode),
        }
        self.watched_less(key, owner, &before);
    }

    /// Ends the bonds of connections that watch no hold here any more.
    fn watched_less(&mut self, key: &Key, owner: &Bytes, before: &BTreeSet<u64>) {
        let Some(hold) = self.locks.hold_mut(key, owner) else {
            return;
        };
        let Some(watch) = hold.watch.as_mut() else {
            return;
        };
        let after = watch.clients();
        let next = watch.next;
        if after.is_empty() {
            watch.rest();
            let bond = (key.clone(), owner.clone());
            self.renewals.change(&bond, next, None);
        }
        for client in before.difference(&after) {
            self.unbind(*client, key, owner);
        }
    }

    /// What was known of a hold that is no more: the connections that watched it.
    pub(super) fn unwatch(&mut self, key: &Key, hold: &Hold) -> BTreeSet<u64> {
        let Some(watch) = &hold.watch else {
            return BTreeSet::new();
        };
        let bond = (key.clone(), hold.owner.clone());
        self.renewals.change(&bond, watch.next, None);
        let clients = watch.clients();
        for client in &clients {
            self.unbind(*client, key, &hold.owner);
        }
        clients
    }

    /// The lease of a watched hold was set by hand of its owner: that is the
    /// watchdog's lease from now on. With `client` all the owner's holds here
    /// belong to that connection.
    pub(super) fn rewatch(
        &mut self,
        (key, owner): (&Key, &Bytes),
        holds: &[(Mode, i64)],
        lease: i64,
        client: Option<u64>,
        now: Now,
    ) {
        let max = self.rules.watchdog_max;
        let Some(hold) = self.locks.hold_mut(key, owner) else {
            return;
        };
        let (before, from) = match &hold.watch {
            Some(watch) => (watch.clients(), watch.next),
            None => (BTreeSet::new(), None),
        };
        if client.is_none() && before.is_empty() {
            return;
        }
        let watch = hold.watch.get_or_insert_with(|| {
            Box::new(Watch {
                lease,
                bound: None,
                next: None,
                taken: Vec::new(),
            })
        });
        watch.lease = lease;
        watch.bound = (max > 0).then(|| now.deadline(max));
        watch.schedule(now);
        let to = watch.next;
        let bond = (key.clone(), owner.clone());
        let Some(client) = client else {
            self.renewals.change(&bond, from, to);
            return;
        };
        let there = holds.iter().filter(|(_, holds)| *holds > 0);
        watch.taken = there
            .map(|(mode, holds)| Taken {
                client,
                watched: true,
                mode: *mode,
                holds: *holds,
            })
            .collect();
        self.watched_less(key, owner, &before);
        self.bind(client, key, owner, from, to);
    }

    /// Whether the connection has watchdog holds.
    pub fn is_bound(&self, client: u64) -> bool {
        self.bonds.contains_key(&client)
    }

    /// So many bonds with their connections, those behind this one first.
    pub fn watched(&self, behind: Option<&(u64, Bond)>, most: usize) -> Vec<(u64, Bond)> {
        let (client, bond) = behind.map_or((0, None), |(client, bond)| (*client, Some(bond)));
        let own = self.bonds.get(&client).into_iter().flat_map(|bonds| {
            let from = bond.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = bonds.range((from, Bound::Unbounded));
            rest.map(move |bond| (client, bond.clone()))
        });
        let of = |(client, bonds): (&u64, &BTreeSet<Bond>)| {
            let client = *client;
            let bonds: Vec<Bond> = bonds.iter().take(most).cloned().collect();
            bonds.into_iter().map(move |bond| (client, bond))
        };
        let later = (Bound::Excluded(client), Bound::Unbounded);
        let later = self.bonds.range(later).flat_map(of);
        let sooner = self.bonds.range(..=client).flat_map(of);
        let sooner = sooner.take_while(|bond| behind.is_some_and(|behind| bond <= behind));
        own.chain(later).chain(sooner).take(most).collect()
    }

    /// How many holds belong to connections.
    pub(super) fn watched_holds(&self) -> u64 {
        let hold = |(key, owner): &Bond| self.locks.hold(key, owner);
        let count = |(client, bond): (&u64, &Bond)| {
            let watch = hold(bond).and_then(|hold| hold.watch.as_ref());
            let taken = watch.iter().flat_map(|watch| &watch.taken);
            let its = taken.filter(|taken| taken.watched && taken.client == *client);
            its.fold(0_i64, |sum, taken| sum.saturating_add(taken.holds))
        };
        let bonds = self.bonds.iter();
        let all = bonds.flat_map(|(client, bonds)| bonds.iter().map(move |bond| (client, bond)));
        all.fold(0, |sum: u64, bond| {
            sum.saturating_add(u64::try_from(count(bond)).unwrap_or(0))
        })
    }

    /// Whether any hold belongs to a connection.
    pub fn is_watching(&self) -> bool {
        !self.bonds.is_empty()
    }

    fn forget_client(&mut self, key: &Key, owner: &Bytes, client: u64) {
        let held = self.locks.hold_mut(key, owner);
        let Some(watch) = held.and_then(|hold| hold.watch.as_mut()) else {
            return;
        };
        let before = watch.clients();
        let its = |taken: &Taken| taken.watched && taken.client == client;
        watch.taken.retain(|taken| !its(taken));
        self.watched_less(key, owner, &before);
    }
}

/// A hold is lost: those who watched it have to know.
pub fn lost(d: &mut Decision<'_>, key: &Key, hold: &Hold) {
    for client in d.core.unwatch(key, hold) {
        if client != d.spared {
            d.out.push(Effect::Close { client });
        }
    }
}

/// The watched holds on all these keys are lost; those who watched them have to
/// know.
pub fn lost_on(d: &mut Decision<'_>, keys: impl Fn(&Key) -> bool) {
    let mut lost = Vec::new();
    d.core.bonds.retain(|client, bonds| {
        let before = bonds.len();
        bonds.retain(|bond| {
            let stays = !keys(&bond.0);
            if !stays {
                lost.push(bond.clone());
            }
            stays
        });
        if bonds.len() < before {
            d.out.push(Effect::Close { client: *client });
        }
        !bonds.is_empty()
    });
    d.core.renewals.retain(|(key, _)| !keys(key));
    for (key, owner) in lost {
        let hold = d.core.locks.hold_mut(&key, &owner);
        if let Some(watch) = hold.and_then(|hold| hold.watch.as_mut()) {
            watch.rest();
        }
    }
}

/// The owner's holds in this mode are lost, others of its are not.
pub fn lost_in(d: &mut Decision<'_>, (key, owner): (&Key, &Bytes), mode: Mode) {
    let held = d.core.locks.hold(key, owner);
    let watch = held.and_then(|hold| hold.watch.as_ref());
    let taken = watch.iter().flat_map(|watch| &watch.taken);
    let lost = taken.filter(|taken| taken.watched && taken.mode == mode);
    let clients: BTreeSet<u64> = lost.map(|taken| taken.client).collect();
    d.core.dropped(key, owner, mode, None);
    for client in clients {
        d.out.push(Effect::Close { client });
    }
}

/// A connection is closed: exactly its watchdog holds end, as if they were
/// released. On how many keys; at most so many at a time.
pub fn closed(d: &mut Decision<'_>, client: u64, most: usize) -> usize {
    let bonds = d.core.bonds.get(&client).into_iter().flatten();
    let bonds: Vec<Bond> = bonds.take(most).cloned().collect();
    let before = d.out.len();
    let mut count: usize = 0;
    for (key, owner) in bonds {
        if d.is_long(before) {
            break;
        }
        count = count.saturating_add(1);
        // What it was granted and never got is over with it.
        let its = |grant: &&mut Grant| grant.watched && grant.client == client;
        for grant in d.core.grants.values_mut().filter(its) {
            grant.keys.retain(|(granted, _)| *granted != key);
        }
        let look = sight::see(d, &key, &owner);
        let held = d.core.locks.hold(&key, &owner);
        let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
            continue;
        };
        let mut modes = Vec::new();
        for taken in &watch.taken {
            if taken.watched && taken.client == client {
                modes.push((taken.mode, taken.holds));
            }
        }
        d.core.forget_client(&key, &owner, client);
        release::end_holds(d, &key, &owner, look, &modes);
    }
    count
}
