//! The tags that connections have given to their waits and holds, by NOTIFY.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use super::address::{Address, Listener};
use super::{ClientId, WaiterId};

/// What one connection is told of. Tags are known by their hashes: there are very many, and
/// no two of one connection are ever likely to be alike by chance.
#[derive(Clone, Debug)]
struct Session {
    /// With the channel that it named first, which is the only one as a rule.
    listener: Rc<Listener>,
    /// Its requests that wait by QUEUE.
    waits: BTreeSet<(u64, WaiterId)>,
    /// How many holds have a tag: those of one request for several keys have one.
    holds: BTreeMap<u64, usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Sessions {
    by_client: BTreeMap<ClientId, Session>,
    hasher: RandomState,
}

impl Sessions {
    /// The address of a request.
    pub fn address(
        &self,
        client: ClientId,
        channel: &[u8],
        tag: &[u8],
        wants_hints: bool,
    ) -> Address {
        let session = self.by_client.get(&client);
        let known = session.filter(|Session { listener, .. }| {
            *listener.channel == *channel && listener.wants_hints == wants_hints
        });
        let new = || {
            let channel = channel.into();
            Rc::new(Listener {
                client,
                channel,
                wants_hints,
            })
        };
        Address {
            listener: known.map_or_else(new, |session| session.listener.clone()),
            tag: tag.into(),
        }
    }

    fn hash(&self, address: &Address) -> u64 {
        self.hasher.hash_one(&address.tag)
    }

    /// Whether a wait or hold of its connection has this tag.
    pub fn has(&self, address: &Address) -> bool {
        let tag = self.hash(address);
        self.by_client.get(&address.client).is_some_and(|session| {
            let mut waits = session.waits.range((tag, WaiterId::FIRST)..);
            let waits = waits.next().is_some_and(|(its, _)| *its == tag);
            waits || session.holds.contains_key(&tag)
        })
    }

    /// The requests of a connection that wait by QUEUE.
    pub fn waits_of(&self, client: ClientId) -> impl Iterator<Item = WaiterId> + '_ {
        let session = self.by_client.get(&client).into_iter();
        let waits = session.flat_map(|session| &session.waits);
        waits.map(|(_, id)| *id)
    }

    /// How many requests of a connection wait by QUEUE.
    pub fn waiting(&self, client: ClientId) -> usize {
        let session = self.by_client.get(&client);
        session.map_or(0, |session| session.waits.len())
    }

    fn of(&mut self, address: &Address) -> &mut Session {
        let session = self.by_client.entry(address.client);
        session.or_insert_with(|| Session {
            listener: address.listener.clone(),
            waits: BTreeSet::new(),
            holds: BTreeMap::new(),
        })
    }

    /// A request waits.
    pub fn add_wait(&mut self, address: &Address, id: WaiterId) {
        let tag = self.hash(address);
        self.of(address).waits.insert((tag, id));
    }

    /// A request waits no more.
    pub fn remove_wait(&mut self, address: &Address, id: WaiterId) {
        let tag = self.hash(address);
        self.of(address).waits.remove(&(tag, id));
        self.tidy(address);
    }

    /// A hold is told of.
    pub fn add_hold(&mut self, address: &Address) {
        let tag = self.hash(address);
        let holds = self.of(address).holds.entry(tag).or_default();
        *holds = holds.saturating_add(1);
    }

    /// One is over.
    pub fn remove_hold(&mut self, address: &Address) {
        let tag = self.hash(address);
        let holds = &mut self.of(address).holds;
        if let Some(count) = holds.get_mut(&tag) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                holds.remove(&tag);
            }
        }
        self.tidy(address);
    }

    fn tidy(&mut self, address: &Address) {
        let session = self.by_client.get(&address.client);
        if session.is_some_and(|session| session.waits.is_empty() && session.holds.is_empty()) {
            self.by_client.remove(&address.client);
        }
    }

    /// No connection has named anything.
    pub fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    /// Asserts that these are the addresses in use.
    #[cfg(test)]
    pub fn check<'a>(
        &self,
        waits: impl Iterator<Item = (&'a Address, WaiterId)>,
        holds: impl Iterator<Item = &'a Address>,
    ) {
        let mut made = Self {
            hasher: self.hasher.clone(),
            ..Self::default()
        };
        waits.for_each(|(address, id)| made.add_wait(address, id));
        holds.for_each(|address| made.add_hold(address));
        let tags = |sessions: &Self| -> Vec<_> {
            let all = sessions.by_client.iter();
            all.map(|(client, of)| (*client, of.waits.clone(), of.holds.clone()))
                .collect()
        };
        assert_eq!(tags(self), tags(&made));
    }
}
