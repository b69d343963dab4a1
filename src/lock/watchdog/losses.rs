//! Holds that are lost, or bound to something else: those to whom they were bound are told. One
//! owner can have very many on one lock; then some are told at a time. Until then their tags are in
//! use.

use std::collections::BTreeSet;
use std::vec::IntoIter;

use crate::lock::address::Address;
use crate::lock::fifo::Fifo;
use crate::lock::table::{Taken, Unbound};
use crate::lock::{ClientId, Key, Loss, Mode, Owner, Reason};

/// So many are told at once.
const AT_ONCE: usize = 256;

/// Why, and who has them from now on.
#[derive(Clone, Copy, Debug)]
pub struct Why {
    pub reason: Reason,
    /// The connection that has them.
    pub heir: Option<ClientId>,
    /// The connection that has ended them: it knows.
    pub by: Option<ClientId>,
}

impl Why {
    pub fn lost(reason: Reason) -> Self {
        Self {
            reason,
            heir: None,
            by: None,
        }
    }

    /// The connection to be closed if these are lost.
    fn watcher(&self, of: &Taken) -> Option<ClientId> {
        let watcher = of.watcher()?;
        let is_spared = match self.reason {
            Reason::Released => true,
            Reason::Forced => self.by == Some(watcher),
            _ => false,
        };
        (!is_spared).then_some(watcher)
    }

    /// Where the loss of these is told.
    fn address<'a>(&self, of: &'a Taken) -> Option<&'a Address> {
        let address = of.notify.as_ref()?;
        let knows = self.reason == Reason::Released && self.by == Some(address.client);
        (!knows).then_some(address)
    }
}

/// Those of one owner on one key.
#[derive(Clone, Debug)]
pub struct Losing {
    key: Key,
    owner: Owner,
    why: Why,
    told: IntoIter<Taken>,
    untold: IntoIter<Taken>,
    /// Who is closed if it does not hear.
    watchers: BTreeSet<ClientId>,
    /// Where it was told.
    known: BTreeSet<(Mode, Address)>,
}

/// What comes of one of them.
#[derive(Debug)]
pub struct Lost {
    /// Nobody is told of it there any more.
    pub address: Option<Address>,
    pub loss: Option<Loss>,
}

impl Losing {
    pub fn new(key: &Key, owner: &Owner, lost: Unbound, why: Why) -> Self {
        let mut watchers = BTreeSet::new();
        let mut last = None;
        for watcher in lost.all().filter_map(|one| why.watcher(one)) {
            // As a rule there is one.
            if last.replace(watcher) != Some(watcher) {
                watchers.insert(watcher);
            }
        }
        Self {
            key: key.clone(),
            owner: owner.clone(),
            why,
            told: lost.told.into_iter(),
            untold: lost.untold.into_iter(),
            watchers,
            known: BTreeSet::new(),
        }
    }

    pub fn are_many(&self) -> bool {
        self.told.len().saturating_add(self.untold.len()) > AT_ONCE
    }

    /// The connections that watched some of them and have given no address: they are told by their
    /// close.
    pub fn closes(&self) -> Vec<Loss> {
        let mut closes = self.watchers.clone();
        if !closes.is_empty() {
            let told = self.told.as_slice().iter();
            for address in told.filter_map(|one| self.why.address(one)) {
                closes.remove(&address.client);
            }
        }
        let closes = closes.into_iter();
        closes.map(|client| self.loss(Some(client), None)).collect()
    }

    fn loss(&self, watcher: Option<ClientId>, address: Option<Address>) -> Loss {
        Loss {
            key: self.key.clone(),
            owner: self.owner.clone(),
            watcher,
            address,
            reason: self.why.reason,
            heir: self.why.heir,
        }
    }

    /// What comes of the next.
    pub fn next(&mut self) -> Option<Lost> {
        let Some(one) = self.told.next() else {
            let address = self.untold.next()?.notify;
            return Some(Lost {
                address,
                loss: None,
            });
        };
        let told = self.why.address(&one).cloned();
        let told = told.filter(|address| self.known.insert((one.mode, address.clone())));
        let loss = told.map(|address| {
            // One that watches too, be it another hold, is closed if it does not hear.
            let watcher = Some(address.client).filter(|client| self.watchers.contains(client));
            self.loss(watcher, Some(address))
        });
        let address = one.notify;
        Some(Lost { address, loss })
    }
}

/// Those that are told some at a time.
#[derive(Clone, Debug, Default)]
pub struct Losses(Fifo<Losing>);

impl Losses {
    pub fn put(&mut self, losing: Losing) {
        self.0.push_back(losing);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What comes of the next of them.
    pub fn next(&mut self) -> Option<Lost> {
        loop {
            let first = self.0.front_mut()?;
            if let Some(lost) = first.next() {
                return Some(lost);
            }
            self.0.pop_front();
        }
    }

    /// Where those are told of that are left.
    #[cfg(test)]
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let all = self.0.iter();
        let all = all.flat_map(|losing| [losing.told.as_slice(), losing.untold.as_slice()]);
        all.flatten().filter_map(|one| one.notify.as_ref())
    }
}
