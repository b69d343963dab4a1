//! The core's writes to the keyspace: each at the moment of its decision, and replicated
//! as the plain command it amounts to. Nothing else may run between a look and its write:
//! events, messages and replies wait until all writes are done (`tell`).

use super::replication::Replication;
use crate::lock::{layout, Key, Mode, Token, WallMs, Write};
use crate::redisson;
use crate::server::keys::{lease_keys, Named, OneKey};
use crate::server::sys::{signal_modified, Ctx, Text, Type};

/// What became of a write that the server did not refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Done,
    /// There was nothing to write.
    Needless,
}

/// Who writes: by which handle, and how it is replicated.
pub struct Writer<'w, 'a> {
    keys: &'w mut OneKey<'a>,
    ctx: Ctx<'a>,
    to: &'w Replication<'a>,
    /// The string `1`.
    one: &'w Text<'static>,
}

impl<'w, 'a> Writer<'w, 'a> {
    pub fn new(keys: &'w mut OneKey<'a>, to: &'w Replication<'a>, one: &'w Text<'static>) -> Self {
        let ctx = keys.ctx();
        Self { keys, ctx, to, one }
    }

    /// Carries out a write. `None`: the server refused.
    pub fn carry_out(self, key: &Key, write: &Write) -> Option<Written> {
        match write {
            Write::Take { owner, holds, at } => self.take(key, owner, *holds, *at),
            Write::Count {
                owner,
                mode,
                holds,
                by,
            } => self.count(key, owner, *mode, *holds, *by),
            Write::Drop { owner, mode } => self.drop_field(key, owner, *mode),
            Write::SetMode(mode) => self.set_mode(key, *mode),
            Write::Lease { owner, index, at } => self.lease(key, owner, *index, *at),
            Write::LeaseAt { owner, index, at } => self.lease_at(key, owner, *index, *at),
            Write::EndLease { owner, index } => self.end_lease(key, owner, *index),
            Write::Fence(token) => self.fence(key, *token),
            Write::ExpireAt(at) => self.end_at(key, *at),
            Write::Delete => delete(self.keys.open(key)?, self.ctx, self.to, key),
        }
    }

    fn take(self, key: &Key, owner: &[u8], holds: i64, at: WallMs) -> Option<Written> {
        let owner = self.keys.given().text(owner)?;
        let other = (holds != 1).then(|| Text::number(holds));
        let holds = match &other {
            None => self.one,
            Some(other) => other.as_ref()?,
        };
        let open = open_to_take(self.keys, self.to, key)?;
        open.set_field(&owner, Some(holds))?;
        self.to.hset(key.db, open.name(), &owner, holds)?;
        expire_at(open, self.to, key, at)?;
        touched(open, self.ctx)
    }

    fn count(self, key: &Key, owner: &[u8], mode: Mode, holds: i64, by: i64) -> Option<Written> {
        let field = field(self.keys, owner, mode)?;
        let value = Text::number(holds)?;
        // A key that is gone meanwhile must not come back without a TTL.
        let open = self.keys.open(key).filter(|open| open.is_there())?;
        open.set_field(&field, Some(&value))?;
        if holds == by {
            self.to.hset(key.db, open.name(), &field, &value)?;
        } else {
            self.to.hincrby(key.db, open.name(), &field, by)?;
        }
        touched(open, self.ctx)
    }

    fn drop_field(self, key: &Key, owner: &[u8], mode: Mode) -> Option<Written> {
        let field = field(self.keys, owner, mode)?;
        let Some(open) = self.keys.open(key).filter(|open| open.is_there()) else {
            return Some(Written::Needless);
        };
        open.set_field(&field, None)?;
        self.to.hdel(key.db, open.name(), &field)?;
        touched(open, self.ctx)
    }

    fn set_mode(self, key: &Key, mode: Mode) -> Option<Written> {
        let (field, value) = (
            Text::new(layout::MODE)?,
            Text::new(layout::mode_text(mode))?,
        );
        let open = open_to_take(self.keys, self.to, key)?;
        open.set_field(&field, Some(&value))?;
        self.to.hset(key.db, open.name(), &field, &value)?;
        touched(open, self.ctx)
    }

    fn lease(self, key: &Key, owner: &[u8], index: i64, at: Option<WallMs>) -> Option<Written> {
        let value = self.keys.given().text(&key.name)?;
        let open = self.keys.open_lease(key, owner, index)?;
        open.set_string(&value)?;
        if let Some(at) = at {
            open.expire_at(at)?;
        }
        self.to.set(key.db, open.name(), &value, at)?;
        touched(open, self.ctx)
    }

    fn lease_at(self, key: &Key, owner: &[u8], index: i64, at: WallMs) -> Option<Written> {
        match self.keys.open_lease(key, owner, index) {
            Some(open) if lease_keys::is_of(open, key) => {
                expire_at(open, self.to, key, at)?;
                touched(open, self.ctx)
            }
            _ => Some(Written::Needless),
        }
    }

    fn end_lease(self, key: &Key, owner: &[u8], index: i64) -> Option<Written> {
        match self.keys.open_lease(key, owner, index) {
            Some(open) if lease_keys::is_of(open, key) => delete(open, self.ctx, self.to, key),
            _ => Some(Written::Needless),
        }
    }

    fn fence(self, key: &Key, token: Token) -> Option<Written> {
        let value = Text::number(token.0)?;
        let name = Key::new(key.db, &redisson::counter(&key.name));
        let open = self.keys.open(&name)?;
        // Another key of the same request can be a lock by this name.
        if open.is_there() && !open.is(Type::String) {
            return None;
        }
        let expires = open.expires();
        open.set_string(&value)?;
        if let Some(at) = expires {
            open.expire_at(at)?;
        }
        self.to.set(key.db, open.name(), &value, expires)?;
        touched(open, self.ctx)
    }

    fn end_at(self, key: &Key, at: WallMs) -> Option<Written> {
        let open = self.keys.open(key)?;
        // Run out since it was looked at.
        if !open.is_there() {
            return Some(Written::Needless);
        }
        expire_at(open, self.to, key, at)?;
        touched(open, self.ctx)
    }
}

/// The key, for a hold that may be its first. What is left of a hash whose only field
/// has run out is removed: the length of the hash counts it still.
fn open_to_take<'k, 'a>(
    keys: &'k mut OneKey<'a>,
    to: &Replication<'_>,
    key: &Key,
) -> Option<&'k Named<'a>> {
    let ctx = keys.ctx();
    let open = keys.open(key)?;
    if open.len() == 1 && open.fields().is_empty() {
        delete(open, ctx, to, key)?;
    }
    Some(open)
}

/// The field that counts an owner's holds in this mode.
fn field<'a>(keys: &OneKey<'a>, owner: &[u8], mode: Mode) -> Option<Text<'a>> {
    match mode {
        Mode::Write => Text::new(&layout::writer_field(owner)),
        Mode::Exclusive | Mode::Read => keys.given().text(owner),
    }
}

fn expire_at(open: &Named<'_>, to: &Replication<'_>, key: &Key, at: WallMs) -> Option<()> {
    open.expire_at(at)?;
    to.pexpireat(key.db, open.name(), at)
}

fn delete(open: &Named<'_>, ctx: Ctx<'_>, to: &Replication<'_>, key: &Key) -> Option<Written> {
    if !open.delete()? {
        return Some(Written::Needless);
    }
    to.del(key.db, open.name())?;
    touched(open, ctx)
}

/// Tells the server that the open key changed (WATCH, client-side caching). Not left
/// to the server, which would do it for a refused try too.
fn touched(open: &Named<'_>, ctx: Ctx<'_>) -> Option<Written> {
    signal_modified(ctx, open.name())?;
    Some(Written::Done)
}
