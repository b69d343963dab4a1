//! The holds of one owner on one key, by who took them, and how many of them are bound to whom.
//! There may be very many: what asks for the counts does not go through all.

use std::ops::Deref;

use crate::lock::address::Address;
use crate::lock::ask::Binding;
use crate::lock::{ClientId, Mode};

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
    pub(super) fn bind_again(&mut self, to: Binding<'_>) -> Option<Self> {
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

    /// Whether they are bound to this one.
    pub(super) fn is_bound_to(&self, client: ClientId) -> bool {
        self.bound_to().any(|its| its == client)
    }

    /// Another hold by the same connection, and no more is to be known of it.
    fn is_more_of(&self, other: &Self) -> bool {
        let kind = |taken: &Self| (taken.client, taken.watched, taken.mode);
        kind(self) == kind(other) && self.notify == other.notify
    }
}

/// The oldest first.
#[derive(Clone, Debug, Default)]
pub struct Takings {
    all: Vec<Taken>,
    /// How many holds belong to connections.
    watched: i64,
    /// How many of these are bound to each connection. Few connections share an owner.
    bound: Vec<(ClientId, usize)>,
}

impl Deref for Takings {
    type Target = [Taken];

    fn deref(&self) -> &[Taken] {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Takings {
    type Item = &'a Taken;
    type IntoIter = std::slice::Iter<'a, Taken>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl FromIterator<Taken> for Takings {
    fn from_iter<I: IntoIterator<Item = Taken>>(all: I) -> Self {
        let mut made = Self::default();
        for taken in all {
            made.push(taken);
        }
        made
    }
}

impl Takings {
    /// How many holds belong to connections.
    pub fn watched(&self) -> i64 {
        self.watched
    }

    /// The connections that some of them are bound to.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + use<'_> {
        self.bound.iter().map(|(client, _)| *client)
    }

    /// How many are bound to this one.
    pub fn bound_to(&self, client: ClientId) -> usize {
        let its = self.bound.iter().find(|(other, _)| *other == client);
        its.map_or(0, |(_, count)| *count)
    }

    /// Adds holds to the last ones if they are more of those. Whether they are not.
    pub fn add(&mut self, new: Taken) -> bool {
        match self.all.last_mut() {
            Some(last) if new.is_more_of(last) => {
                last.holds = last.holds.saturating_add(new.holds);
                if new.watched {
                    self.watched = self.watched.saturating_add(new.holds);
                }
                false
            }
            _ => {
                self.push(new);
                true
            }
        }
    }

    fn push(&mut self, new: Taken) {
        self.count(&new, true);
        self.all.push(new);
    }

    /// Takes away so many of these holds, and gives what is over if none is left.
    pub fn lessen(&mut self, at: usize, holds: i64) -> Option<Taken> {
        let taken = self.all.get_mut(at)?;
        if taken.holds > holds {
            taken.holds = taken.holds.saturating_sub(holds);
            if taken.watched {
                self.watched = self.watched.saturating_sub(holds);
            }
            return None;
        }
        let taken = self.all.remove(at);
        self.count(&taken, false);
        Some(taken)
    }

    /// Takes out those for which this holds.
    pub fn extract(&mut self, which: impl Fn(&Taken) -> bool) -> Vec<Taken> {
        let out: Vec<Taken> = self.all.extract_if(.., |taken| which(taken)).collect();
        for taken in &out {
            self.count(taken, false);
        }
        out
    }

    /// Changes all of them.
    pub fn change_each(&mut self, mut change: impl FnMut(&mut Taken)) {
        let mut all = std::mem::take(self).all;
        all.iter_mut().for_each(&mut change);
        *self = all.into_iter().collect();
    }

    fn count(&mut self, taken: &Taken, on: bool) {
        if taken.watched {
            let holds = if on {
                taken.holds
            } else {
                taken.holds.saturating_neg()
            };
            self.watched = self.watched.saturating_add(holds);
        }
        let (watcher, told) = (taken.watcher(), taken.told());
        let told = told.filter(|told| watcher != Some(*told));
        for client in watcher.into_iter().chain(told) {
            self.count_bound(client, on);
        }
    }

    fn count_bound(&mut self, client: ClientId, on: bool) {
        let place = self.bound.iter().position(|(other, _)| *other == client);
        let count = place.and_then(|place| self.bound.get_mut(place));
        match (count, on) {
            (Some((_, count)), true) => *count = count.saturating_add(1),
            (Some((_, count)), false) => *count = count.saturating_sub(1),
            (None, true) => self.bound.push((client, 1)),
            (None, false) => {}
        }
        if !on {
            self.bound.retain(|(_, count)| *count > 0);
        }
    }
}
