//! When two states are the same: all that the core, the keyspace and the model
//! remember, written down so that only what makes a difference is left. Waiters
//! count by their order, connections by their seat, tokens by which are the same.
//! Of a moment only whether it is over: leases are so long here that none ends by
//! itself ([`super::universe::LEASE`]), so how far off their ends are makes none.

mod model;
mod permits;

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use super::names::{Labels, Names};
use crate::lock::memory::Value;
use crate::lock::table::{Entry, Hold};
use crate::lock::tests::family::model::{Client, NEVER};
use crate::lock::tests::family::promises::Promises;
use crate::lock::tests::family::world::World;
use crate::lock::{Address, Core, Key, Lease, Mode, MonoUs, Now, WaiterId, WallMs, WallUs};

/// The same for all states that are the same under some of these names: that of the
/// least of what is written down under each.
pub fn fingerprint(world: &World, promises: &Promises, names: &[Labels]) -> u64 {
    let mut least: Vec<u8> = Vec::new();
    for labels in names {
        let mut page = Page::new(world, labels);
        if page.write(promises, &least).is_some() {
            least = page.text;
        }
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(&least);
    hasher.finish()
}

struct Page<'a> {
    world: &'a World,
    labels: &'a Labels,
    names: &'a Names,
    text: Vec<u8>,
    /// The tokens of the core and of the model, as they were met.
    tokens: [Vec<i64>; 2],
    /// All who wait or were granted, in the order of their arrival.
    ids: Vec<WaiterId>,
}

/// Not one of those that are numbered.
const NONE: u8 = u8::MAX;

impl<'a> Page<'a> {
    fn new(world: &'a World, labels: &'a Labels) -> Self {
        let core = &world.shell.core;
        let waiting = core.queues.iter().map(|(id, _)| id);
        let mut ids: Vec<_> = waiting
            .chain(core.in_flight.grants.keys().copied())
            .collect();
        ids.sort_unstable();
        Self {
            world,
            labels,
            names: &labels.names,
            text: Vec::with_capacity(512),
            tokens: Default::default(),
            ids,
        }
    }

    /// Writes all down; `None` as soon as it is not less than what there is.
    fn write(&mut self, promises: &Promises, least: &[u8]) -> Option<()> {
        let world = self.world;
        for key in &self.labels.keys {
            match world.shell.core.locks.get(key) {
                None => self.put(NONE),
                Some(entry) => self.entry(key, entry),
            }
            self.goes_on(least)?;
        }
        self.flag(world.unread);
        self.flag(world.overdue);
        self.queue(&world.shell.core, promises);
        self.goes_on(least)?;
        self.core(&world.shell.core);
        self.goes_on(least)?;
        self.keyspace();
        self.goes_on(least)?;
        self.model();
        (least.is_empty() || *self.text < *least).then_some(())
    }

    fn goes_on(&self, least: &[u8]) -> Option<()> {
        let known = &least[..least.len().min(self.text.len())];
        (least.is_empty() || *self.text <= *known).then_some(())
    }

    fn put(&mut self, byte: u8) {
        self.text.push(byte);
    }

    fn count(&mut self, count: usize) {
        self.put(u8::try_from(count).unwrap());
    }

    fn flag(&mut self, flag: bool) {
        self.put(u8::from(flag));
    }

    fn place_of<T: PartialEq>(list: &[T], one: &T) -> u8 {
        let at = list.iter().position(|other| other == one);
        at.map_or(NONE, |at| u8::try_from(at).unwrap())
    }

    fn owner(&mut self, owner: &[u8]) {
        let at = self.names.owners.iter();
        let at = at.map(|owner| owner.as_bytes()).position(|o| o == owner);
        self.put(u8::try_from(at.unwrap()).unwrap());
    }

    fn client(&mut self, client: Option<Client>) {
        let seat_of = |client| {
            let seat = self.world.seats.iter().position(|open| *open == client);
            seat.map_or(NONE, |seat| Self::place_of(&self.names.seats, &seat))
        };
        // Nobody that is known, or a connection that is closed.
        self.put(client.map_or(NONE - 1, seat_of));
    }

    /// The connection of a hold makes a difference if it watches for it. Else it tells
    /// which of several holds in one mode is given back, and here there is one at most.
    fn taker(&mut self, client: Option<Client>, watches: bool) {
        if watches || self.labels.tells {
            self.client(client);
        }
    }

    fn address(&mut self, address: Option<&Address>) {
        let Some(address) = address else {
            return self.put(NONE);
        };
        self.text.extend(&*address.channel);
        self.text.extend(&*address.tag);
        self.flag(address.wants_hints);
        self.client(Some(address.client));
    }

    fn name(&self, key: &Key) -> u8 {
        Self::place_of(&self.labels.keys, key)
    }

    fn keys<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) {
        let mut names: Vec<u8> = keys.into_iter().map(|key| self.name(key)).collect();
        names.sort_unstable();
        self.count(names.len());
        self.text.append(&mut names);
    }

    fn id(&mut self, id: WaiterId) {
        self.put(Self::place_of(&self.ids, &id));
    }

    fn ids<'i>(&mut self, ids: impl IntoIterator<Item = &'i WaiterId>) {
        let ids: Vec<_> = ids.into_iter().copied().collect();
        self.count(ids.len());
        ids.into_iter().for_each(|id| self.id(id));
    }

    fn token(&mut self, of: usize, token: Option<i64>) {
        let Some(token) = token else {
            return self.put(NONE);
        };
        let known = &mut self.tokens[of];
        if !known.contains(&token) {
            known.push(token);
        }
        let at = Self::place_of(&self.tokens[of], &token);
        self.put(at);
    }

    fn moment(&mut self, at: Option<WallMs>) {
        let now = self.world.shell.ks.now_ms;
        self.put(match at {
            None | Some(WallMs(NEVER)) => 0,
            Some(at) if at < now => 1,
            Some(_) => 2,
        });
    }

    fn core(&mut self, core: &Core) {
        let names = self.names;
        for owner in &names.owners {
            match core.queues.owner(owner.as_bytes()) {
                None => self.put(NONE),
                Some(owner) => self.ids(&core.queues.ids_of(owner).collect::<Vec<_>>()),
            }
        }
        for client in names.seats.iter().map(|seat| self.world.seats[*seat]) {
            let mut waits: Vec<_> = core.waits_of(client).collect();
            // By their tags, which are what a request meets.
            waits.sort_by_cached_key(|id| {
                let waiter = core.queues.get(*id);
                let tag = waiter.and_then(|w| w.told_at()).map(|to| to.tag.clone());
                (tag, *id)
            });
            self.ids(&waits);
            self.flag(self.world.shell.ks.deaf.contains(&client));
            self.silence(client);
            let bonds: Vec<_> = core.watchdogs.of_client(client).collect();
            for bond in self.labels.bonds.iter().filter(|_| !bonds.is_empty()) {
                self.flag(bonds.contains(&bond));
            }
        }
        self.hints(core);
        self.keys(core.queues.keys());
        assert!(core.due.is_empty());
        assert!(!core.any_unread());
        self.count(core.locks.deadlines());

        let end = Now {
            wall: WallUs(i64::MAX),
            mono: MonoUs(i64::MAX - 1),
            ends_early: false,
        };
        self.ids(&core.queues.over(end, usize::MAX));
        let renewals = core.watchdogs.due(end, usize::MAX);
        self.keys(renewals.iter().map(|(key, _)| key));
        assert!(core.subscribers.is_empty());
    }

    /// All who wait, in the order in which they are served, and the grants under
    /// way.
    fn queue(&mut self, core: &Core, promises: &Promises) {
        let mut waiters: Vec<_> = core.queues.iter().collect();
        waiters.sort_by(|(_, one), (_, other)| one.rank.cmp(&other.rank));
        self.count(waiters.len());
        for (id, waiter) in waiters {
            self.id(id);
            self.flag(waiter.rank.is_front());
            self.flag(promises.came_ahead(id));
            self.keys(&waiter.keys);
            self.owner(&waiter.want.owner);
            self.client(waiter.want.client);
            self.put(waiter.want.mode as u8);
            self.share(waiter.want.share);
            self.flag(waiter.want.watch);
            self.put(waiter.want.once as u8);
            self.flag(waiter.until().is_some());
            self.flag(waiter.queued);
            self.address(waiter.want.notify.as_ref());
        }
        let mut grants: Vec<_> = core.in_flight.grants.iter().collect();
        grants.sort_by_key(|(id, _)| **id);
        self.count(grants.len());
        for (id, grant) in grants {
            self.id(*id);
            self.owner(&grant.want.owner);
            self.client(grant.want.client);
            self.put(grant.want.mode as u8);
            self.share(grant.want.share);
            self.flag(grant.want.watch);
            self.address(grant.want.notify.as_ref());
            let mut keys: Vec<_> = grant.keys.iter().collect();
            keys.sort_by_key(|(key, _)| self.name(key));
            for (key, token) in keys {
                self.put(self.name(key));
                self.token(0, Some(token.0));
            }
        }
    }

    fn entry(&mut self, key: &Key, entry: &Entry) {
        let names = self.names;
        self.moment(entry.deadline);
        self.flag(entry.foreign);
        let line = self.world.shell.core.queues.line(key);
        self.ids(&line.queue.ids().collect::<Vec<_>>());
        self.ids(&line.entangled.ids().collect::<Vec<_>>());
        self.hold(entry.plain());
        let Some(shared) = entry.shared() else {
            return self.put(NONE);
        };
        self.known_permits(shared);
        self.moment(shared.expires);
        self.moment(shared.first_end());
        self.moment(shared.last_end());
        self.count(shared.fields());
        match shared.writer() {
            Some(writer) => self.owner(writer),
            None => self.put(NONE),
        }
        self.count(shared.holds().count());
        for owner in &names.owners {
            let Some(hold) = shared.hold(owner.as_bytes()) else {
                self.put(NONE);
                continue;
            };
            self.hold(Some(hold));
            let reads = hold.tokens(Mode::Read);
            let (first, newest) = reads.unzip();
            for token in [first, newest] {
                self.token(0, token.map(|token| token.0));
            }
            self.flag(hold.writes_given);
            self.flag(hold.reads);
            self.flag(hold.writes);
            self.count(usize::try_from(hold.holds).unwrap());
            match hold.lease {
                Lease::Gone => self.put(NONE),
                Lease::Until(at) => self.moment(Some(at)),
                Lease::Endless | Lease::Migrating => self.moment(None),
            }
        }
    }

    fn hold(&mut self, hold: Option<&Hold>) {
        let Some(hold) = hold else {
            return self.put(NONE);
        };
        self.owner(&hold.owner);
        self.token(0, hold.token().map(|token| token.0));
        let Some(watch) = &hold.watch else {
            self.taker(hold.client, false);
            return self.put(NONE);
        };
        self.text.extend(watch.lease.to_le_bytes());
        self.moment(watch.bound);
        self.moment(watch.next);
        if self.labels.hears {
            self.moment(Some(watch.asked));
        }
        self.count(watch.taken.len());
        for taken in &watch.taken {
            self.flag(taken.watched);
            self.taker(taken.client, taken.watched);
            self.put(taken.mode as u8);
            self.count(usize::try_from(taken.holds).unwrap());
            self.address(taken.notify.as_ref());
        }
    }

    fn keyspace(&mut self) {
        let (labels, keys) = (self.labels, &self.world.shell.ks.keys);
        let mut known = 0;
        for key in &labels.keys {
            let Some((value, ends)) = keys.get(key) else {
                self.put(NONE);
                continue;
            };
            known += 1;
            self.moment(*ends);
            match value {
                Value::Hash(fields) => self.fields(fields),
                other => self.text.extend(format!("{other:?}").bytes()),
            }
        }
        self.flag(known < keys.len());
        if known == keys.len() {
            return;
        }
        for key in &labels.lease_keys {
            match keys.get(key) {
                None => self.put(NONE),
                Some((value, ends)) => {
                    known += 1;
                    self.flag(*value == Value::Text);
                    self.moment(*ends);
                }
            }
        }
        assert_eq!(
            known,
            keys.len(),
            "more keys than are written down: {keys:?}"
        );
    }
}
