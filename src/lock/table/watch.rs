//! Watchdog holds: the server renews their lease while their connection is open,
//! and they end with it.
//!
//! An owner has one lease on a key, whatever its holds; so it is watched as long
//! as one of its holds there is a watchdog's. Which of them a RELEASE ends depends
//! on who took them: that is remembered, but for holds that were found.

use std::collections::BTreeSet;

use super::takings::{Taken, Takings};
use crate::lock::address::Address;
use crate::lock::ask::{Binding, Want};
use crate::lock::{ClientId, Kind, Lease, Look, Mode, Now, WallMs};

/// Which holds have begun and ended, one by one.
#[derive(Debug, Default)]
pub struct Changed {
    pub begun: Vec<Taken>,
    pub ended: Vec<Taken>,
    /// So many more belong to connections, or fewer.
    pub watched: i64,
}

impl Changed {
    /// These have begun; `apart`: they are no more of those that were there.
    pub fn begins(&mut self, new: &Taken, apart: bool) {
        if new.watched {
            self.watched = self.watched.saturating_add(new.holds);
        }
        if apart {
            self.begun.push(new.clone());
        }
    }
}

/// The holds of one owner on one key, by who took them, and what is watched.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// What the lease is renewed to, ms.
    pub lease: i64,
    /// No renewal goes beyond this.
    pub bound: Option<WallMs>,
    /// When it is renewed next.
    pub next: Option<WallMs>,
    /// The oldest first.
    pub taken: Takings,
}

impl Watch {
    /// Some hold belongs to a connection.
    pub fn is_watched(&self) -> bool {
        self.watched() > 0
    }

    /// How many holds belong to connections.
    pub fn watched(&self) -> i64 {
        self.taken.watched()
    }

    /// The connections that some of these holds are bound to.
    pub fn clients(&self) -> BTreeSet<ClientId> {
        self.taken.clients().collect()
    }

    /// Where the loss of some of these holds is told.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.taken.iter().filter_map(|taken| taken.notify.as_ref())
    }

    /// How many holds there are in this mode.
    pub fn holds(&self, mode: Mode) -> i64 {
        let of = self.taken.iter().filter(|taken| taken.mode == mode);
        of.fold(0, |sum, taken| sum.saturating_add(taken.holds))
    }

    /// Adds them. Whether they stand apart: they are no more of those that were there.
    pub fn add(&mut self, new: Taken) -> bool {
        self.taken.add(new)
    }

    /// The connections that what has changed is bound to: whether something here was bound to
    /// each of them, and whether something is.
    pub fn bound_by(&self, changed: &Changed) -> Vec<(ClientId, bool, bool)> {
        let of = |taken: &[Taken], client| {
            let is_its = |taken: &&Taken| taken.is_bound_to(client);
            taken.iter().filter(is_its).count()
        };
        let all = changed.begun.iter().chain(&changed.ended);
        let clients: BTreeSet<_> = all.flat_map(Taken::bound_to).collect();
        let bound = clients.into_iter().map(|client| {
            let is = self.taken.bound_to(client);
            let was = is.saturating_add(of(&changed.ended, client));
            (client, was > of(&changed.begun, client), is > 0)
        });
        bound.collect()
    }

    /// Its lease is this from now on.
    pub fn renewed(&mut self, lease: i64, bound: Option<WallMs>, now: Now) {
        (self.lease, self.bound) = (lease, bound);
        self.schedule(now);
    }

    /// Takes away so many holds in this mode: the newest that the connection took, else
    /// the newest that are no watchdog's, else the newest. What has ended by it.
    pub fn drop_some(
        &mut self,
        mode: Mode,
        client: Option<ClientId>,
        holds: i64,
        changed: &mut Changed,
    ) -> Vec<Taken> {
        let (mut over, mut left) = (Vec::new(), holds);
        while left > 0 {
            let Some(at) = self.next_to_drop(mode, client) else {
                break;
            };
            left = self.drop_at(at, left, &mut over, changed);
        }
        over
    }

    fn next_to_drop(&self, mode: Mode, client: Option<ClientId>) -> Option<usize> {
        let newest = |fits: &dyn Fn(&Taken) -> bool| {
            let mut all = self.taken.iter();
            all.rposition(|taken| taken.mode == mode && fits(taken))
        };
        newest(&|taken| client.is_some() && taken.client == client)
            .or_else(|| newest(&|taken| !taken.watched))
            .or_else(|| newest(&|_| true))
    }

    /// Takes away the holds that a request has made, or else as many as they would be
    /// released. What has ended by it.
    pub fn take_back(&mut self, want: &Want, changed: &mut Changed) -> Vec<Taken> {
        let made = |taken: &Taken| {
            (taken.mode, taken.client, taken.watched) == (want.mode, want.client, want.watch)
                && taken.notify == want.notify
        };
        let (mut over, mut left) = (Vec::new(), want.share.count());
        if let Some(at) = self.taken.iter().rposition(made) {
            left = self.drop_at(at, left, &mut over, changed);
        }
        over.extend(self.drop_some(want.mode, want.client, left, changed));
        over
    }

    /// Takes away as many of these holds as there are, at most so many; how many are left
    /// to be taken away.
    fn drop_at(
        &mut self,
        at: usize,
        holds: i64,
        over: &mut Vec<Taken>,
        changed: &mut Changed,
    ) -> i64 {
        let Some((all, is_watched)) = self.taken.get(at).map(|it| (it.holds, it.watched)) else {
            return 0;
        };
        if is_watched {
            changed.watched = changed.watched.saturating_sub(all.min(holds));
        }
        if let Some(taken) = self.taken.lessen(at, holds) {
            changed.ended.push(taken.clone());
            over.push(self.not_told_yet(taken));
        }
        holds.saturating_sub(all).max(0)
    }

    /// Takes away the holds of a connection's watchdog.
    pub fn drop_watched(&mut self, client: ClientId) -> Vec<Taken> {
        let over = self.taken.extract(|taken| taken.watcher() == Some(client));
        let over = over.into_iter().map(|taken| self.not_told_yet(taken));
        over.collect()
    }

    /// Of holds that have ended nothing is told while others have their address.
    fn not_told_yet(&self, mut over: Taken) -> Taken {
        let mut left = self.taken.iter().filter(|taken| taken.mode == over.mode);
        if left.any(|taken| taken.notify == over.notify) {
            over.notify = None;
        }
        over
    }

    /// Takes away all holds in this mode.
    pub fn drop_all(&mut self, mode: Mode) -> Vec<Taken> {
        self.taken.extract(|taken| taken.mode == mode)
    }

    /// All holds, so many in each mode, are watched for this connection from now on. Where
    /// their loss is told stays.
    pub fn bind_all(&mut self, holds: &[(Mode, i64)], client: Option<ClientId>) {
        let was = std::mem::take(&mut self.taken);
        for (mode, mut left) in holds.iter().copied() {
            let new = |holds, notify| Taken {
                client,
                watched: true,
                mode,
                holds,
                notify,
            };
            let mut told = Vec::new();
            for taken in was.iter().filter(|taken| taken.mode == mode) {
                if taken.notify.is_some() {
                    let holds = taken.holds.min(left);
                    left = left.saturating_sub(holds);
                    told.push(new(holds, taken.notify.clone()));
                }
            }
            told.insert(0, new(left, None));
            let there = told.into_iter().filter(|taken| taken.holds > 0);
            there.for_each(|taken| {
                self.add(taken);
            });
        }
    }

    /// The holds in this mode are acquired again with ONCE, or renewed: what the request
    /// names they are bound to from now on, the rest stays. A connection that is told of what it
    /// watches is not bound half. What they are not bound to any more.
    pub fn bind_again(&mut self, to: Binding<'_>) -> Vec<Taken> {
        let mut was = Vec::new();
        for mut taken in self.taken.extract(|_| true) {
            if taken.mode == to.mode {
                was.extend(taken.bind_again(to));
            }
            self.add(taken);
        }
        was
    }

    /// No hold is bound to anything any more: those that were.
    pub fn unbind(&mut self, which: impl Fn(&Taken) -> bool) -> Vec<Taken> {
        let mut was = Vec::new();
        self.taken.change_each(|taken| {
            if taken.bound_to().next().is_some() && which(taken) {
                was.push(taken.clone());
                (taken.watched, taken.notify) = (false, None);
            }
        });
        was
    }

    /// Whether this connection took a hold in this mode that is there still.
    pub fn has(&self, mode: Mode, client: Option<ClientId>) -> bool {
        let mut taken = self.taken.iter();
        taken.any(|taken| taken.mode == mode && taken.client == client)
    }

    /// No hold belongs to a connection any more.
    pub fn rest(&mut self) {
        if self.is_watched() {
            self.taken.change_each(|taken| taken.watched = false);
        }
        (self.lease, self.bound, self.next) = (0, None, None);
    }

    /// What the lease is renewed to now.
    pub fn renewed_to(&self, now: Now) -> WallMs {
        let full = now.deadline(self.lease);
        self.bound.map_or(full, |bound| full.min(bound))
    }

    pub fn schedule(&mut self, now: Now) {
        let third = (self.lease / 3).max(1);
        self.next = Some(now.deadline(third));
    }

    /// The lease was to be renewed by now and before it ended at this moment, and was not:
    /// the server stood still, or may not write. If not so, it was ended by somebody.
    pub fn stalled(&self, ended: Option<WallMs>, now: Now) -> bool {
        let by = ended.map(|at| at.min(now.wall_ms()));
        self.next.zip(by).is_some_and(|(next, by)| next <= by)
    }
}

/// The lease of an owner's holds, in whatever mode it has them.
pub fn own_lease(look: &Look) -> Lease {
    match look.kind {
        Kind::ReadWrite(_) if look.writes == 0 => look.lease,
        Kind::Permits(_) => look.lease,
        Kind::Plain | Kind::ReadWrite(_) => look.expires.map_or(Lease::Endless, Lease::Until),
        Kind::Free | Kind::Foreign(_) => Lease::Gone,
    }
}
