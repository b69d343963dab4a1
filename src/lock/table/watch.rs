//! Watchdog holds: the server renews their lease while their connection is open,
//! and they end with it.
//!
//! An owner has one lease on a key, whatever its holds; so it is watched as long
//! as one of its holds there is a watchdog's. Which of them a RELEASE ends depends
//! on who took them: that is remembered, but for holds that were found.

use std::collections::BTreeSet;

use crate::lock::address::Address;
use crate::lock::ask::{Binding, Want};
use crate::lock::{ClientId, Kind, Lease, Look, Mode, Now, WallMs};

/// Holds that one connection took one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The connection, as far as it is known.
    pub client: Option<ClientId>,
    /// They end with it.
    pub watched: bool,
    pub mode: Mode,
    pub holds: i64,
    /// Where their loss is told. Others of the same mode may have the same address: it is
    /// told once they are all lost.
    pub notify: Option<Address>,
}

impl Taken {
    /// The connection whose watchdog keeps them.
    pub fn watcher(&self) -> Option<ClientId> {
        self.client.filter(|_| self.watched)
    }

    /// The connection that is told of their loss.
    pub fn told(&self) -> Option<ClientId> {
        self.notify.as_ref().map(|address| address.client)
    }

    /// The connections that they are bound to, by WATCHDOG or by NOTIFY.
    pub fn bound_to(&self) -> impl Iterator<Item = ClientId> {
        self.watcher().into_iter().chain(self.told())
    }

    /// What the request names they are bound to from now on. What they are not bound to any
    /// more.
    fn bind_again(&mut self, to: Binding<'_>) -> Option<Self> {
        let old = self.notify.as_ref().filter(|_| to.notify.is_some());
        let old = old.filter(|old| to.notify != Some(old)).cloned();
        let moves = to.watch || old.is_some() && self.watcher() == self.told();
        let was = Self {
            watched: self.watched && moves && self.client != to.client,
            notify: old,
            ..self.clone()
        };
        if moves {
            (self.client, self.watched) = (to.client, true);
        }
        if let Some(notify) = to.notify {
            self.notify = Some(notify.clone());
        }
        was.bound_to().next().is_some().then_some(was)
    }

    /// Another hold by the same connection, and no more is to be known of it.
    fn is_more_of(&self, other: &Self) -> bool {
        let kind = |taken: &Self| (taken.client, taken.watched, taken.mode);
        kind(self) == kind(other) && self.notify == other.notify
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
    pub taken: Vec<Taken>,
}

impl Watch {
    /// Some hold belongs to a connection.
    pub fn is_watched(&self) -> bool {
        self.taken.iter().any(|taken| taken.watched)
    }

    /// How many holds belong to connections.
    pub fn watched(&self) -> i64 {
        let its = self.taken.iter().filter(|taken| taken.watched);
        its.fold(0, |sum, taken| sum.saturating_add(taken.holds))
    }

    /// The connections that some of these holds are bound to.
    pub fn clients(&self) -> BTreeSet<ClientId> {
        self.taken.iter().flat_map(Taken::bound_to).collect()
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

    pub fn add(&mut self, new: Taken) {
        match self.taken.last_mut() {
            Some(last) if new.is_more_of(last) => {
                last.holds = last.holds.saturating_add(new.holds);
            }
            _ => self.taken.push(new),
        }
    }

    /// Takes away so many holds in this mode: the newest that the connection took, else
    /// the newest that are no watchdog's, else the newest. What has ended by it.
    pub fn drop_some(&mut self, mode: Mode, client: Option<ClientId>, holds: i64) -> Vec<Taken> {
        let (mut over, mut left) = (Vec::new(), holds);
        while let Some(at) = self.next_to_drop(mode, client).filter(|_| left > 0) {
            left = self.drop_at(at, left, &mut over);
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
    pub fn take_back(&mut self, want: &Want) -> Vec<Taken> {
        let made = |taken: &Taken| {
            (taken.mode, taken.client, taken.watched) == (want.mode, want.client, want.watch)
                && taken.notify == want.notify
        };
        let (mut over, mut left) = (Vec::new(), want.share.count());
        if let Some(at) = self.taken.iter().rposition(made) {
            left = self.drop_at(at, left, &mut over);
        }
        over.extend(self.drop_some(want.mode, want.client, left));
        over
    }

    /// Takes away as many of these holds as there are, at most so many; how many are left
    /// to be taken away.
    fn drop_at(&mut self, at: usize, holds: i64, over: &mut Vec<Taken>) -> i64 {
        let Some(taken) = self.taken.get_mut(at) else {
            return 0;
        };
        let all = taken.holds;
        taken.holds = all.saturating_sub(holds);
        if taken.holds < 1 {
            let taken = self.taken.remove(at);
            over.push(self.not_told_yet(taken));
        }
        holds.saturating_sub(all).max(0)
    }

    /// Takes away the holds of a connection's watchdog.
    pub fn drop_watched(&mut self, client: ClientId) -> Vec<Taken> {
        let its = |taken: &mut Taken| taken.watcher() == Some(client);
        let over: Vec<Taken> = self.taken.extract_if(.., its).collect();
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
        let theirs = |taken: &mut Taken| taken.mode == mode;
        self.taken.extract_if(.., theirs).collect()
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
            there.for_each(|taken| self.add(taken));
        }
    }

    /// The holds in this mode are acquired again with ONCE, or renewed: what the request
    /// names they are bound to from now on, the rest stays. A connection that is told of what it
    /// watches is not bound half. What they are not bound to any more.
    pub fn bind_again(&mut self, to: Binding<'_>) -> Vec<Taken> {
        let mut was = Vec::new();
        for mut taken in std::mem::take(&mut self.taken) {
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
        for taken in &mut self.taken {
            if taken.bound_to().next().is_some() && which(taken) {
                was.push(taken.clone());
                (taken.watched, taken.notify) = (false, None);
            }
        }
        was
    }

    /// Whether this connection took a hold in this mode that is there still.
    pub fn has(&self, mode: Mode, client: Option<ClientId>) -> bool {
        let mut taken = self.taken.iter();
        taken.any(|taken| taken.mode == mode && taken.client == client)
    }

    /// No hold belongs to a connection any more.
    pub fn rest(&mut self) {
        for taken in &mut self.taken {
            taken.watched = false;
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
