//! The holds of one owner on one key, by who took them, and how many of them are bound to whom.
//! There may be very many: what asks for the counts does not go through all.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Deref;

use crate::lock::address::Address;
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

    /// Where it is told that somebody waits for them.
    pub fn hinted_at(&self) -> Option<&Address> {
        let address = self.notify.as_ref();
        address.filter(|address| address.wants_hints)
    }

    /// The connection that is told of their loss.
    pub fn told(&self) -> Option<ClientId> {
        self.notify.as_ref().map(|address| address.client)
    }

    /// The connections that they are bound to, by WATCHDOG or by NOTIFY.
    pub fn bound_to(&self) -> impl Iterator<Item = ClientId> {
        self.watcher().into_iter().chain(self.told())
    }

    /// These, told of nowhere.
    pub(super) fn clone_unnamed(&self) -> Self {
        let notify = None;
        Self { notify, ..*self }
    }

    /// Another hold by the same connection, and no more is to be known of it.
    fn is_more_of(&self, other: &Self) -> bool {
        let kind = |taken: &Self| (taken.client, taken.watched, taken.mode);
        kind(self) == kind(other) && self.notify == other.notify
    }
}

/// Holds that have ended, or are not bound any more to what they were.
#[derive(Clone, Debug, Default)]
pub struct Unbound {
    /// Their loss is told where they were told of.
    pub told: Vec<Taken>,
    /// That of these is not: others that are left have the same address, or it is known there.
    pub untold: Vec<Taken>,
}

impl Unbound {
    pub fn all(&self) -> impl Iterator<Item = &Taken> {
        self.told.iter().chain(&self.untold)
    }

    /// Their loss is told. Where there are very many they are not copied.
    pub(super) fn tell(&mut self, taken: Vec<Taken>) {
        if self.told.is_empty() {
            self.told = taken;
        } else {
            self.told.extend(taken);
        }
    }

    /// Nobody is told of these any more, and that is not told.
    pub(super) fn forget(&mut self, taken: Taken) {
        if taken.notify.is_some() {
            let watched = false;
            self.untold.push(Taken { watched, ..taken });
        }
    }
}

/// So many are gone through one by one.
const FEW: usize = 16;

/// Of one connection.
#[derive(Clone, Copy, Debug, Default)]
struct Of {
    /// So many are bound to it,
    bound: usize,
    /// and it has taken so many.
    took: usize,
}

/// The oldest first.
#[derive(Clone, Debug, Default)]
pub struct Takings {
    all: Vec<Taken>,
    /// How many holds belong to connections,
    watched: i64,
    /// and how many of these that is.
    watched_takings: usize,
    /// Of so many it is told that somebody waits for them.
    hinted: usize,
    /// By connection. Few share an owner.
    clients: Vec<(ClientId, Of)>,
    /// Where there are more than a few: how many are told of at each address, by its hash. No
    /// two are ever likely to be alike by chance.
    told: Option<BTreeMap<u64, usize>>,
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

    /// Whether all of them do.
    pub fn are_watched(&self) -> bool {
        self.watched_takings == self.all.len()
    }

    /// Whether of any it is told that somebody waits for them.
    pub fn any_hinted(&self) -> bool {
        self.hinted > 0
    }

    /// The connections that some of them are bound to, in order.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + use<'_> {
        let bound = self.clients.iter().filter(|(_, of)| of.bound > 0);
        bound.map(|(client, _)| *client)
    }

    /// Whether this connection took some.
    pub fn has_by(&self, client: ClientId) -> bool {
        let place = self.clients.binary_search_by_key(&client, |(its, _)| *its);
        let its = place.ok().and_then(|place| self.clients.get(place));
        its.is_some_and(|(_, of)| of.took > 0)
    }

    /// Whether some in this mode are told of there.
    pub fn are_told_at(&self, mode: Mode, address: &Address) -> bool {
        match &self.told {
            Some(told) => told.contains_key(&hash(mode, address)),
            None => {
                let mut all = self.all.iter();
                all.any(|taken| taken.mode == mode && taken.notify.as_ref() == Some(address))
            }
        }
    }

    /// Whether the last ones are one with these.
    pub fn are_joined_by(&self, new: &Taken) -> bool {
        self.all.last().is_some_and(|last| new.is_more_of(last))
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
        if self.told.is_none() && self.all.len() > FEW {
            let mut told = BTreeMap::new();
            for taken in &self.all {
                count_told(&mut told, taken, true);
            }
            self.told = Some(told);
        }
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
        self.uncount(&taken);
        Some(taken)
    }

    /// Takes out those for which this holds.
    pub fn extract(&mut self, which: impl Fn(&Taken) -> bool) -> Vec<Taken> {
        if self.all.iter().all(&which) {
            return self.take_all();
        }
        let out: Vec<Taken> = self.all.extract_if(.., |taken| which(taken)).collect();
        out.iter().for_each(|taken| self.uncount(taken));
        out
    }

    /// All belong to this connection from now on.
    pub fn bind_each(&mut self, client: Option<ClientId>) {
        let told = self.told.take();
        let mut all = self.take_all();
        for taken in &mut all {
            (taken.client, taken.watched) = (client, true);
            self.count(taken, true);
        }
        (self.all, self.told) = (all, told);
    }

    /// Takes out all.
    pub fn take_all(&mut self) -> Vec<Taken> {
        std::mem::take(self).all
    }

    fn uncount(&mut self, taken: &Taken) {
        self.count(taken, false);
        if self.all.len() <= FEW {
            self.told = None;
        }
    }

    fn count(&mut self, taken: &Taken, on: bool) {
        if taken.watched {
            let holds = if on {
                taken.holds
            } else {
                taken.holds.saturating_neg()
            };
            self.watched = self.watched.saturating_add(holds);
            count(&mut self.watched_takings, on);
        }
        if taken.hinted_at().is_some() {
            count(&mut self.hinted, on);
        }
        if let Some(told) = &mut self.told {
            count_told(told, taken, on);
        }
        let (watcher, told) = (taken.watcher(), taken.told());
        let told = told.filter(|told| watcher != Some(*told));
        for client in watcher.into_iter().chain(told) {
            self.count_of(client, |of| count(&mut of.bound, on));
        }
        if let Some(client) = taken.client {
            self.count_of(client, |of| count(&mut of.took, on));
        }
    }

    fn count_of(&mut self, client: ClientId, change: impl FnOnce(&mut Of)) {
        let place = self.clients.binary_search_by_key(&client, |(its, _)| *its);
        let place = place.unwrap_or_else(|place| {
            self.clients.insert(place, (client, Of::default()));
            place
        });
        let Some((_, of)) = self.clients.get_mut(place) else {
            return;
        };
        change(of);
        if of.bound == 0 && of.took == 0 {
            self.clients.remove(place);
        }
    }
}

/// One more, or one fewer.
fn count(of: &mut usize, more: bool) {
    *of = if more {
        of.saturating_add(1)
    } else {
        of.saturating_sub(1)
    };
}

fn hash(mode: Mode, address: &Address) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    hasher.hash_one((mode, address))
}

fn count_told(told: &mut BTreeMap<u64, usize>, taken: &Taken, on: bool) {
    let Some(address) = &taken.notify else { return };
    let hash = hash(taken.mode, address);
    let all = told.entry(hash).or_default();
    count(all, on);
    if *all == 0 {
        told.remove(&hash);
    }
}
