//! The server's keyspace as the core sees it: it looks by `keys` and writes by `outbound`.

use super::rights;
use crate::lock::kind;
use crate::lock::{
    leases_looked_at, Act, Address, ClientId, Counter, Foreign, Hint, Holder, Key, Keyspace, Kind,
    Lease, Look, Mode, Part, Slot, Write,
};
use crate::redisson;
use crate::server::keys::{counter, lease_keys, slots, OneKey};
use crate::server::outbound::reach;
use crate::server::outbound::replication::Replication;
use crate::server::outbound::write::Writer;
use crate::server::sys::{hash_scan, Access, FirstArgs, Selected, Type};

/// Who asks for a decision.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub to: Replication<'a>,
    pub given: FirstArgs<'a>,
    /// The first key of the command, if it has one.
    pub first_key: Option<&'a [u8]>,
}

impl<'a> Caller<'a> {
    pub fn without_command(to: Replication<'a>) -> Self {
        Self {
            to,
            given: FirstArgs::default(),
            first_key: None,
        }
    }
}

/// Lent to the core for a decision.
pub struct ServerKeyspace<'a> {
    to: Replication<'a>,
    keys: OneKey<'a>,
    /// In a cluster: a command sees keys of this name's slot and no others.
    slot_of: Option<&'a [u8]>,
    /// Keys that were not there, as long as nothing is to be written.
    missed: Option<Vec<Key>>,
}

impl<'a> ServerKeyspace<'a> {
    pub fn new(caller: &Caller<'a>, access: Access) -> Self {
        let to = caller.to;
        Self {
            to,
            keys: OneKey::new(to.ctx, access, caller.given),
            slot_of: caller.first_key.filter(|_| to.shell.server.cluster),
            missed: (access == Access::Read).then(Vec::new),
        }
    }

    /// The keys that were looked for and are not there.
    pub fn missed(self) -> Vec<Key> {
        self.missed.unwrap_or_default()
    }

    /// The key as its own value shows it, without any lease key.
    fn look_at_hash(&mut self, key: &Key, owner: &[u8], hint: Hint<'_>) -> Look {
        let ran_out = &self.to.shell.own_work.ran_out;
        ran_out.set(false);
        let open = self.keys.open(key);
        let Some((open, kind)) = open.and_then(|open| Some((open, open.kind()?))) else {
            self.missed
                .iter_mut()
                .for_each(|missed| missed.push(key.clone()));
            return Look {
                ran_out: ran_out.get(),
                ..Look::FREE
            };
        };
        if kind != Type::Hash {
            return Look {
                kind: Kind::Foreign(Foreign::OtherType),
                expires: open.expires(),
                ..Look::FREE
            };
        }
        kind::look_with_hint(open, owner, hint, || open.expires())
    }

    /// The lease of an owner with so many read holds.
    fn lease_of(&mut self, key: &Key, owner: &[u8], holds: i64) -> Lease {
        let mut lease = Lease::Gone;
        let mut missing = false;
        for index in leases_looked_at(holds) {
            let open = self.keys.open_lease(key, owner, index);
            match open.filter(|open| open.is_there()) {
                Some(open) => lease = lease.max(lease_keys::lease(open, key)),
                None => missing = true,
            }
        }
        if missing && !self.slot_stays(key) {
            return Lease::Migrating;
        }
        lease
    }
}

impl Keyspace for ServerKeyspace<'_> {
    fn look_with_hint(&mut self, key: &Key, owner: &[u8], hint: Hint<'_>) -> Look {
        let look = self.look_at_hash(key, owner, hint);
        if !matches!(look.kind, Kind::ReadWrite(_)) || look.holds == 0 {
            return look;
        }
        Look {
            lease: self.lease_of(key, owner, look.holds),
            ..look
        }
    }

    fn some_holders(&mut self, key: &Key, steps: usize) -> Vec<Holder> {
        let Some(open) = self.keys.open(key).filter(|open| open.is(Type::Hash)) else {
            return Vec::new();
        };
        let mut holders = kind::holders(open, open.expires(), steps);
        for holder in &mut holders {
            if holder.mode == Mode::Read {
                holder.lease = self.lease_of(key, &holder.owner, holder.holds);
            }
        }
        holders
    }

    fn some_fields(&mut self, key: &Key, cursor: u64) -> Part {
        let open = self.keys.open(key).filter(|open| open.is(Type::Hash));
        let kind = open.and_then(kind::kind);
        self.keys.close();
        let _db = Selected::new(self.to.ctx, key.db);
        match hash_scan(self.to.ctx, &key.name, cursor) {
            Some((fields, next)) => Part::of(kind, fields, next),
            // Not to be had so: all of them.
            None => match self.keys.open(key).filter(|open| open.is(Type::Hash)) {
                Some(open) => Part::of(kind, open.fields(), None),
                None => Part::default(),
            },
        }
    }

    fn is_wrong(&mut self, key: &Key, field: &[u8]) -> bool {
        let open = self.keys.open(key).filter(|open| open.is(Type::Hash));
        open.is_some_and(|open| kind::is_wrong(open, field))
    }

    fn may_lease(&mut self, key: &Key, owner: &[u8], index: i64) -> bool {
        let open = self.keys.open_lease(key, owner, index);
        open.is_none_or(|open| !open.is_there() || lease_keys::is_of(open, key))
    }

    fn counter(&mut self, key: &Key) -> Counter {
        // Opening it may expire it, and another module that gets that event could
        // change the lock.
        if !self.to.shell.situation.alone.get() {
            self.keys.close();
        }
        counter::read(self.to.shell, self.to.ctx, key)
    }

    fn is_at_hand(&self, key: &Key) -> bool {
        let same = |name| redisson::slot_part(name) == redisson::slot_part(&key.name);
        self.slot_of.is_none_or(same)
    }

    fn slot_stays(&mut self, key: &Key) -> bool {
        if !self.to.shell.server.cluster {
            return true;
        }
        self.keys.close();
        slots::slot_stays(self.to.ctx, key)
    }

    fn in_cluster(&self) -> bool {
        self.to.shell.server.cluster
    }

    fn slot(&mut self, key: &Key) -> Slot {
        // The server has let the command in for the second of these.
        if !self.to.shell.server.cluster || self.slot_of == Some(&key.name[..]) {
            return Slot::Ours;
        }
        self.keys.close();
        slots::whose(self.to.ctx, key)
    }

    fn reaches(&mut self, address: &Address) -> bool {
        self.keys.close();
        reach::reaches(&self.to, address)
    }

    fn may(&mut self, client: ClientId, act: Act<'_>) -> bool {
        rights::may(self.to.ctx, self.keys.given, client, act)
    }

    fn write(&mut self, key: &Key, write: &Write) -> bool {
        // A nested call of ours can be under way, in somebody's event callback.
        let writing = self.to.shell.own(key, None);
        let (keys, to) = (&mut self.keys, &self.to);
        let written = Writer { keys, to }.carry_out(key, write);
        drop(writing);
        if written.is_none() {
            let text = format!("rlock: the server refused a write: {write:?} of {key:?}");
            self.to.ctx.warn(&text);
        }
        written == Some(true)
    }
}
