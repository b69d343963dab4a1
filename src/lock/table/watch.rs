//! Watchdog holds: the server renews their lease while their connection is open,
//! and they end with it.
//!
//! An owner has one lease on a key, whatever its holds; so it is watched as long
//! as one of its holds there is a watchdog's. Which of them a RELEASE ends depends
//! on who took them: that is remembered, but for holds that were found.

use std::collections::BTreeMap;

use super::takings::{Taken, Takings, Unbound};
use crate::lock::address::Address;
use crate::lock::ask::{Binding, Want};
use crate::lock::{ClientId, Mode, Now, WallMs};

/// What has come to be bound, and what is not any more: one by one, so that nobody goes through
/// what has not changed. There may be very many.
#[derive(Debug, Default)]
pub struct Changed {
    /// Where holds are told of from now on: each of those that stand apart.
    pub begun: Vec<Address>,
    pub ended: Unbound,
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
    /// The lease that its owner has asked for ends then: nobody's silence ends it sooner.
    pub asked: WallMs,
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

    /// Where the loss of some of these holds is told.
    #[cfg(test)]
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.taken.iter().filter_map(|taken| taken.notify.as_ref())
    }

    /// How many holds there are in this mode.
    pub fn holds(&self, mode: Mode) -> i64 {
        let of = self.taken.iter().filter(|taken| taken.mode == mode);
        of.fold(0, |sum, taken| sum.saturating_add(taken.holds))
    }

    /// Adds them.
    pub fn add(&mut self, new: Taken, changed: &mut Changed) {
        if self.taken.add(new) {
            let last = self.taken.last();
            changed
                .begun
                .extend(last.and_then(|last| last.notify.clone()));
        }
    }

    /// Its lease is this from now on.
    pub fn renewed(&mut self, lease: i64, bound: Option<WallMs>, now: Now) {
        (self.lease, self.bound) = (lease, bound);
        self.asked = now.deadline(lease);
        self.schedule(now);
    }

    /// Takes away so many holds in this mode: the newest that the connection took, else
    /// the newest that are no watchdog's, else the newest.
    pub fn drop_some(
        &mut self,
        mode: Mode,
        client: Option<ClientId>,
        holds: i64,
        changed: &mut Changed,
    ) {
        let mut left = holds;
        while left > 0 {
            let Some(at) = self.next_to_drop(mode, client) else {
                break;
            };
            left = self.drop_at(at, left, changed);
        }
    }

    fn next_to_drop(&self, mode: Mode, client: Option<ClientId>) -> Option<usize> {
        let newest = |fits: &dyn Fn(&Taken) -> bool| {
            let mut all = self.taken.iter();
            all.rposition(|taken| taken.mode == mode && fits(taken))
        };
        // Where there is none it is not looked for: there may be very many others.
        let any_its = client.is_some_and(|client| self.taken.has_by(client));
        let any_plain = !self.taken.are_watched();
        let its = any_its.then(|| newest(&|taken| taken.client == client));
        let plain = || any_plain.then(|| newest(&|taken| !taken.watched));
        let its = its.flatten().or_else(|| plain().flatten());
        its.or_else(|| newest(&|_| true))
    }

    /// Takes away the holds that a request has made, or else as many as they would be
    /// released.
    pub fn take_back(&mut self, want: &Want, changed: &mut Changed) {
        let made = |taken: &Taken| {
            (taken.mode, taken.client, taken.watched) == (want.mode, want.client, want.watch)
                && taken.notify == want.notify
        };
        // They go by another name since, and are bound to nothing any more.
        let rests = |taken: &Taken| {
            (taken.mode, taken.client, taken.watched) == (want.mode, want.client, false)
                && taken.notify.is_none()
        };
        let all = || self.taken.iter();
        let mut left = want.share.count();
        if let Some(at) = all().rposition(made).or_else(|| all().rposition(rests)) {
            left = self.drop_at(at, left, changed);
        }
        self.drop_some(want.mode, want.client, left, changed);
    }

    /// Takes away as many of these holds as there are, at most so many; how many are left
    /// to be taken away.
    fn drop_at(&mut self, at: usize, holds: i64, changed: &mut Changed) -> i64 {
        let Some(all) = self.taken.get(at).map(|taken| taken.holds) else {
            return 0;
        };
        if let Some(taken) = self.taken.lessen(at, holds) {
            self.end(taken, changed);
        }
        holds.saturating_sub(all).max(0)
    }

    /// These have ended: nothing is told of it while others have their address.
    fn end(&self, taken: Taken, changed: &mut Changed) {
        let address = taken.notify.as_ref();
        if address.is_some_and(|address| self.taken.are_told_at(taken.mode, address)) {
            changed.ended.untold.push(taken);
        } else {
            changed.ended.told.push(taken);
        }
    }

    /// Takes away the holds of a connection's watchdog, which is closed: nothing more is told
    /// to it. How many there were in each mode.
    pub fn close(&mut self, client: ClientId, changed: &mut Changed) -> BTreeMap<Mode, i64> {
        let (mut over, mut holds) = (Vec::new(), BTreeMap::new());
        for mut taken in self.taken.take_all() {
            let knows = taken.told() == Some(client);
            let rest = Taken {
                notify: taken.notify.take_if(|_| !knows),
                ..taken.clone_unnamed()
            };
            if taken.watcher() == Some(client) {
                let all = holds.entry(taken.mode).or_insert(0_i64);
                *all = all.saturating_add(taken.holds);
                over.push(rest);
            } else {
                self.put_back(rest, changed);
            }
            changed.ended.forget(taken);
        }
        for taken in over {
            self.end(taken, changed);
        }
        holds
    }

    /// Takes away the holds of a connection's watchdog, which goes on. How many there were in each
    /// mode.
    pub fn take_from(&mut self, client: ClientId, changed: &mut Changed) -> BTreeMap<Mode, i64> {
        let mut holds = BTreeMap::new();
        for taken in self.taken.extract(|taken| taken.watcher() == Some(client)) {
            let all = holds.entry(taken.mode).or_insert(0_i64);
            *all = all.saturating_add(taken.holds);
            self.end(taken, changed);
        }
        holds
    }

    /// Takes away all holds in this mode.
    pub fn drop_all(&mut self, mode: Mode, changed: &mut Changed) {
        let all = self.taken.extract(|taken| taken.mode == mode);
        changed.ended.tell(all);
    }

    /// Holds that are told of where they were.
    fn put_back(&mut self, taken: Taken, changed: &mut Changed) {
        if self.taken.are_joined_by(&taken) {
            changed.ended.forget(taken.clone());
        }
        self.taken.add(taken);
    }

    /// All holds, so many in each mode, are watched for this connection from now on. Where
    /// their loss is told stays.
    pub fn bind_all(
        &mut self,
        holds: &[(Mode, i64)],
        client: Option<ClientId>,
        changed: &mut Changed,
    ) {
        let as_many = |(mode, holds): &(Mode, i64)| self.holds(*mode) == *holds;
        let is_there = |taken: &Taken| holds.iter().any(|(mode, _)| *mode == taken.mode);
        let is_told = |taken: &Taken| taken.notify.is_some() && is_there(taken);
        if self.taken.iter().all(is_told) && holds.iter().all(as_many) {
            return self.taken.bind_each(client);
        }
        let mut was = self.taken.take_all();
        for (mode, mut left) in holds.iter().copied() {
            let watched = |holds, notify| Taken {
                client,
                watched: true,
                mode,
                holds,
                notify,
            };
            let mut told = Vec::new();
            for taken in was.extract_if(.., |taken| taken.mode == mode) {
                let holds = taken.holds.min(left);
                if holds > 0 && taken.notify.is_some() {
                    left = left.saturating_sub(holds);
                    told.push(watched(holds, taken.notify));
                } else {
                    changed.ended.forget(taken);
                }
            }
            if left > 0 {
                self.taken.add(watched(left, None));
            }
            told.into_iter()
                .for_each(|taken| self.put_back(taken, changed));
        }
        was.into_iter()
            .for_each(|taken| changed.ended.forget(taken));
    }

    /// The holds in this mode are acquired again with ONCE, or renewed: what the request
    /// names they are bound to from now on, the rest stays. A connection that is told of what it
    /// watches is not bound half. Whether they were bound to something else.
    pub fn bind_again(&mut self, to: Binding<'_>, changed: &mut Changed) -> bool {
        let mut all = self.taken.take_all();
        for other in all.extract_if(.., |taken| taken.mode != to.mode) {
            self.put_back(other, changed);
        }
        let mut any = false;
        for was in &mut all {
            let other = was.notify.as_ref().zip(to.notify);
            let tells = other.is_some_and(|(was, to)| was != to);
            let moves = to.watch || tells && was.watcher() == was.told();
            let (client, watched) = match moves {
                true => (to.client, true),
                false => (was.client, was.watched),
            };
            was.watched &= moves && was.client != to.client;
            any |= was.watcher().is_some() || tells;
            let notify = match to.notify {
                Some(notify) => Some(notify.clone()),
                None => was.notify.take(),
            };
            let is = Taken {
                notify,
                client,
                watched,
                ..was.clone_unnamed()
            };
            match to.notify {
                Some(_) => self.add(is, changed),
                None => self.put_back(is, changed),
            }
        }
        let untold = all.extract_if(.., |was| was.notify.as_ref() == to.notify);
        changed.ended.untold.extend(untold);
        changed.ended.tell(all);
        any
    }

    /// No hold is bound to anything any more: those that were.
    pub fn unbind(&mut self, which: impl Fn(&Taken) -> bool, changed: &mut Changed) {
        let mut all = self.taken.take_all();
        let is_bound = |taken: &Taken| taken.bound_to().next().is_some() && which(taken);
        for taken in &mut all {
            let mut is = taken.clone_unnamed();
            if is_bound(taken) {
                is.watched = false;
            } else {
                is.notify = taken.notify.take();
                taken.watched = false;
            }
            self.put_back(is, changed);
        }
        all.retain(|taken| taken.bound_to().next().is_some());
        changed.ended.tell(all);
    }

    /// Whether this connection took a hold in this mode that is there still.
    pub fn has(&self, mode: Mode, client: Option<ClientId>) -> bool {
        let mut taken = self.taken.iter();
        taken.any(|taken| taken.mode == mode && taken.client == client)
    }

    /// No hold belongs to a connection any more: nothing is renewed.
    pub fn rest(&mut self) {
        (self.lease, self.bound, self.next) = (0, None, None);
        self.asked = WallMs::default();
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
