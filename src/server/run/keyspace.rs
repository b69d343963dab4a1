//! The server's keyspace as the core sees it: it looks by `keys` and writes by `outbound`.

use crate::lock::{
    leases_looked_at, Counter, Effect, Foreign, Holder, Key, Keyspace, Kind, Lease, Look, Mode,
};
use crate::redisson;
use crate::server::keys::hash::{self, count, counted};
use crate::server::keys::slots::{self, Slot};
use crate::server::keys::{counter, lease_keys, Named, OneKey};
use crate::server::outbound::replication::{By, Replication};
use crate::server::outbound::write::{Writer, Written};
use crate::server::shell::Shell;
use crate::server::state::{OwnWork, Server, Situation};
use crate::server::sys::{Access, Ctx, Given, Text, Type};

/// Who asks for a decision.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub shell: &'a Shell,
    pub ctx: Ctx<'a>,
    pub by: By,
    pub given: Given<'a>,
    /// The first key of the command, if it has one.
    pub first_key: Option<&'a [u8]>,
}

impl<'a> Asked<'a> {
    pub fn without_command(shell: &'a Shell, ctx: Ctx<'a>, by: By) -> Self {
        Self {
            shell,
            ctx,
            by,
            given: Given::default(),
            first_key: None,
        }
    }
}

/// Lent to the core for a decision.
pub struct ServerKeyspace<'a> {
    server: &'a Server,
    situation: &'a Situation,
    own_work: &'a OwnWork,
    to: Replication<'a>,
    keys: OneKey<'a>,
    /// In a cluster: a command sees keys of this name's slot and no others.
    slot_of: Option<&'a [u8]>,
    /// Writes that changed nothing or were refused: nobody is to be told of them.
    unwritten: Vec<Effect>,
}

impl<'a> ServerKeyspace<'a> {
    pub fn new(asked: &Asked<'a>, access: Access) -> Self {
        let Asked { shell, ctx, by, .. } = *asked;
        Self {
            server: &shell.server,
            situation: &shell.situation,
            own_work: &shell.own_work,
            to: Replication::new(ctx, &shell.server, &shell.situation, by),
            keys: OneKey::new(ctx, access, asked.given),
            slot_of: asked.first_key.filter(|_| shell.server.cluster),
            unwritten: Vec::new(),
        }
    }

    /// Closes the key that is open, before anything runs that may change it.
    pub fn close(&mut self) {
        self.keys.close();
    }

    /// Ends the decisions: closes the key that is open. The writes that changed nothing or
    /// were refused.
    pub fn into_unwritten(self) -> Vec<Effect> {
        self.unwritten
    }

    /// The key as its own value shows it, without any lease key.
    fn look_at_hash(&mut self, key: &Key, owner: &[u8]) -> Look {
        self.own_work.look();
        let given = self.keys.given();
        let open = self.keys.open(key);
        let Some((open, kind)) = open.and_then(|open| Some((open, open.kind()?))) else {
            return Look {
                ran_out: self.own_work.has_run_out(),
                ..Look::FREE
            };
        };
        let no_lock = |why| Look {
            kind: Kind::Foreign(why),
            expires: ends(open),
            ..Look::FREE
        };
        if kind != Type::Hash {
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
            let open = self.keys.open_lease(key, owner, index);
            match open.filter(|open| open.is_there()) {
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

/// When an open key ends, as the core has it: wall-clock ms.
fn ends(open: &Named<'_>) -> Option<i64> {
    open.expires().map(|at| at.0)
}

/// A hash of one field: a plain lock, if its value is a count of holds.
fn look_at_plain(open: &Named<'_>, given: Given<'_>, owner: &[u8]) -> Option<Look> {
    let plain = |holds| Look {
        kind: Kind::Plain,
        fields: 1,
        holds,
        expires: ends(open),
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
fn look_at_shared(open: &Named<'_>, len: usize, given: Given<'_>, owner: &[u8]) -> Option<Look> {
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
        expires: ends(open),
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
        let Some(open) = self.keys.open(key).filter(|open| open.is(Type::Hash)) else {
            return Vec::new();
        };
        let lease = ends(open).map_or(Lease::Endless, Lease::Until);
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
        let open = self.keys.open_lease(key, owner, index);
        open.is_none_or(|open| !open.is_there() || lease_keys::is_of(open, key))
    }

    fn counter(&mut self, key: &Key) -> Counter {
        // Opening it may expire it, and another module that hears of that could
        // change the lock.
        if !self.situation.is_alone() {
            self.keys.close();
        }
        counter::read(self.keys.ctx(), key, self.server.cluster)
    }

    fn is_at_hand(&self, key: &Key) -> bool {
        let same = |name| redisson::slot_part(name) == redisson::slot_part(&key.name);
        self.slot_of.is_none_or(same)
    }

    fn is_settled(&mut self, key: &Key) -> bool {
        if !self.server.cluster {
            return true;
        }
        self.keys.close();
        slots::is_settled(self.keys.ctx(), key)
    }

    fn is_free(&mut self, key: &Key) -> bool {
        if !self.server.cluster {
            return true;
        }
        // The server has let the command in for this key.
        if self.slot_of == Some(&key.name[..]) {
            return true;
        }
        self.keys.close();
        slots::whose(self.keys.ctx(), key) == Slot::Ours
    }

    fn write(&mut self, effect: &Effect) -> bool {
        // A nested call of ours can be under way, in somebody's event callback.
        let writing = self.own_work.write();
        let writer = Writer::new(&mut self.keys, &self.to, &self.server.one);
        let written = writer.carry_out(effect);
        drop(writing);
        if written == Some(Written::Done) {
            return true;
        }
        if written.is_none() {
            let text = format!("rlock: the server refused a write: {effect:?}");
            self.keys.ctx().warn(&text);
        }
        self.unwritten.push(effect.clone());
        false
    }
}
