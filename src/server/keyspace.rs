//! The server's keyspace as the core sees it; `write` has the core's writes to it.
//!
//! One key is open at a time, and for a plain lock it is opened once: the handle of
//! the look is used again for the write. A read/write lock has lease keys beside its
//! hash, and opening one may expire it and run the callbacks of others, so the hash
//! is read first, closed, and opened again if there is something to write. Nothing
//! else may run between a look and its write: events, publishes and replies wait
//! until all writes are done (`effects`).

use std::ops::Deref;

use super::counter;
use super::ffi::{Ctx, Given, Selected, Text};
use super::hash::{self, count, counted};
use super::lease_keys;
pub use super::opened::Access;
use super::opened::{Opened, Type};
use super::shell::Shell;
use super::slots::{self, Slot};
use crate::lock::{
    leases_looked_at, Counter, Effect, Foreign, Holder, Key, Keyspace, Kind, Lease, Look, Mode,
};
use crate::redisson;

pub struct ServerKeyspace<'a> {
    pub(super) shell: &'static Shell,
    pub(super) ctx: Ctx,
    pub(super) given: Given<'a>,
    access: Access,
    /// In a cluster: a command sees keys of this name's slot and no others.
    slot_of: Option<&'a [u8]>,
    open: Option<Open>,
}

/// A key that is open, and which.
pub(super) struct Open {
    key: Key,
    pub(super) name: Text,
    opened: Opened,
    /// The database it lives in stays selected: the server's calls on a handle
    /// and the replication of its writes go by the context's database.
    _db: Selected,
}

impl Deref for Open {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

impl<'a> ServerKeyspace<'a> {
    pub fn new(shell: &'static Shell, ctx: Ctx, access: Access, given: Given<'a>) -> Self {
        Self {
            shell,
            ctx,
            given,
            access,
            slot_of: None,
            open: None,
        }
    }

    /// For a command on this key.
    pub fn within_slot_of(mut self, name: Option<&'a [u8]>) -> Self {
        self.slot_of = name.filter(|_| self.shell.server.cluster);
        self
    }

    /// Closes the key that is open, before anything runs that may change it.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// The handle of a key, opened unless it is the one that is open. `None`:
    /// it does not exist (or cannot be opened).
    pub(super) fn open(&mut self, key: &Key) -> Option<&Open> {
        if self.open.as_ref().is_none_or(|open| open.key != *key) {
            self.open = None;
            let name = self.given.text(&key.name)?;
            let db = Selected::new(self.ctx, key.db);
            self.open = Some(Open {
                key: key.clone(),
                opened: Opened::new(self.ctx, &name, self.access)?,
                name,
                _db: db,
            });
        }
        self.open.as_ref()
    }

    /// The lease key of a read hold, opened.
    pub(super) fn open_lease(&mut self, key: &Key, owner: &[u8], index: i64) -> Option<&Open> {
        let name = redisson::lease_key(&key.name, owner, index);
        self.open(&Key::new(key.db, &name))
    }

    /// The key as its own value shows it, without any lease key.
    fn look_at_hash(&mut self, key: &Key, owner: &[u8]) -> Look {
        let given = self.given;
        let shell = self.shell;
        shell.expired_here.set(false);
        let there = self.open(key).filter(|open| open.is_there());
        let Some(open) = there else {
            return Look {
                ran_out: shell.expired_here.get(),
                ..Look::FREE
            };
        };
        let no_lock = |why| Look {
            kind: Kind::Foreign(why),
            expires: open.expires(),
            ..Look::FREE
        };
        if !open.is(Type::Hash) {
            return no_lock(Foreign::OtherType);
        }
        let found = match open.len() {
            1 => look_at_plain(open, given, owner),
            len => look_at_shared(open, len, given, owner),
        };
        found.unwrap_or_else(|| no_lock(Foreign::OtherHash))
    }

    /// The lease of an owner with so many read holds.
    fn lease_of(&mut self, key: &Key, owner: &[u8], holds: i64) -> Lease {
        let mut lease = Lease::Gone;
        let mut missing = false;
        for index in leases_looked_at(holds) {
            match self
                .open_lease(key, owner, index)
                .filter(|open| open.is_there())
            {
                Some(open) => lease = lease.max(lease_keys::lease(open, key)),
                None => missing = true,
            }
        }
        if missing && !self.is_settled(key) {
            return Lease::Away;
        }
        lease
    }
}

/// A hash of one field: a plain lock, if its value is a count of holds.
fn look_at_plain(open: &Open, given: Given<'_>, owner: &[u8]) -> Option<Look> {
    let plain = |holds| Look {
        kind: Kind::Plain,
        fields: 1,
        holds,
        expires: open.expires(),
        ..Look::FREE
    };
    let own = given.text(owner).and_then(|owner| open.field(&owner));
    if let Some(value) = own {
        return count(value.bytes()).map(plain);
    }
    match open.fields().first() {
        // Fields can have a TTL of their own on newer servers, and this one has
        // run out.
        None => Some(Look::FREE),
        Some((name, value)) if name == hash::MODE && hash::mode_of(value).is_some() => {
            // A read/write lock whose holders are all gone.
            let kind = Kind::ReadWrite(hash::mode_of(value)?);
            let fields = 0;
            Some(Look {
                kind,
                fields,
                ..plain(0)
            })
        }
        Some((_, value)) => count(value).map(|_| plain(0)),
    }
}

/// A hash of several fields: a read/write lock, if it has a mode. Of the others the
/// owner's fields alone are looked at, for there may be many.
fn look_at_shared(open: &Open, len: usize, given: Given<'_>, owner: &[u8]) -> Option<Look> {
    let mode = open.field(&Text::new(hash::MODE)?)?;
    let mode = hash::mode_of(mode.bytes())?;
    let (reads, writes) = if owner.is_empty() || owner == hash::MODE {
        (None, None)
    } else {
        let writer = Text::new(&[owner, hash::WRITER].concat())?;
        (open.field(&given.text(owner)?), open.field(&writer))
    };
    Some(Look {
        kind: Kind::ReadWrite(mode),
        fields: len.saturating_sub(1),
        holds: counted(reads)?,
        writes: counted(writes)?,
        expires: open.expires(),
        ..Look::FREE
    })
}

impl Keyspace for ServerKeyspace<'_> {
    fn look(&mut self, key: &Key, owner: &[u8]) -> Look {
        let look = self.look_at_hash(key, owner);
        if !matches!(look.kind, Kind::ReadWrite(_)) || look.holds == 0 {
            return look;
        }
        Look {
            lease: self.lease_of(key, owner, look.holds),
            ..look
        }
    }

    fn holders(&mut self, key: &Key) -> Vec<Holder> {
        let Some(open) = self.open(key).filter(|open| open.is(Type::Hash)) else {
            return Vec::new();
        };
        let lease = open.expires().map_or(Lease::Endless, Lease::Until);
        let fields = open.fields();
        let plain = fields.len() == 1;
        let is_mode = |(name, value): &(Vec<u8>, Vec<u8>)| {
            name == hash::MODE && hash::mode_of(value).is_some()
        };
        if !plain && !fields.iter().any(is_mode) {
            return Vec::new();
        }
        let mut holders: Vec<Holder> = fields
            .into_iter()
            .filter_map(|(field, value)| {
                let holds = count(&value)?;
                let (owner, mode) = match field.strip_suffix(hash::WRITER) {
                    _ if plain => (field, Mode::Exclusive),
                    Some(owner) => (owner.to_vec(), Mode::Write),
                    None => (field, Mode::Read),
                };
                if mode != Mode::Exclusive && !hash::is_owner(&owner) {
                    return None;
                }
                Some(Holder {
                    owner,
                    mode,
                    holds,
                    lease,
                })
            })
            .collect();
        for holder in &mut holders {
            if holder.mode == Mode::Read {
                holder.lease = self.lease_of(key, &holder.owner, holder.holds);
            }
        }
        holders
    }

    fn may_lease(&mut self, key: &Key, owner: &[u8], index: i64) -> bool {
        let open = self.open_lease(key, owner, index);
        open.is_none_or(|open| !open.is_there() || lease_keys::is_of(open, key))
    }

    fn counter(&mut self, key: &Key) -> Counter {
        // Opening it may expire it, and another module that hears of that could
        // change the lock.
        if !self.shell.alone.get() {
            self.open = None;
        }
        counter::read(self.ctx, key, self.shell.server.cluster)
    }

    fn is_at_hand(&self, key: &Key) -> bool {
        let same = |name| redisson::slot_part(name) == redisson::slot_part(&key.name);
        self.slot_of.is_none_or(same)
    }

    fn is_settled(&mut self, key: &Key) -> bool {
        if !self.shell.server.cluster {
            return true;
        }
        self.open = None;
        slots::is_settled(self.shell, self.ctx, key)
    }

    fn is_free(&mut self, key: &Key) -> bool {
        if !self.shell.server.cluster {
            return true;
        }
        // The server has let the command in for this key.
        if self.slot_of == Some(&key.name[..]) {
            return true;
        }
        self.open = None;
        slots::whose(self.shell, self.ctx, key) == Slot::Ours
    }

    fn write(&mut self, effect: &Effect) -> bool {
        self.carry_out(effect)
    }
}
