//! The core's writes to the keyspace: each at the moment of its decision, and replicated
//! as the plain command it amounts to. Nothing else may run between a look and its write:
//! events, messages and replies wait until all writes are done (`notices`).

use super::replication::Replication;
use crate::lock::{kind, Key, Mode, Pool, Token, WallMs, Write};
use crate::redisson;
use crate::server::keys::{lease_keys, KeyHandle, OneKey};
use crate::server::sys::{signal_modified, Text, To, Type};

/// Who writes: by which handle, and how it is replicated. Each write here: whether there
/// was anything to write. `None`: the server refused.
///
/// The key that is written to is open, and so its database is selected.
pub struct Writer<'w, 'a> {
    pub keys: &'w mut OneKey<'a>,
    pub to: &'w Replication<'a>,
}

impl Writer<'_, '_> {
    /// Carries out a write.
    pub fn carry_out(self, key: &Key, write: &Write) -> Option<bool> {
        match write {
            Write::Take { owner, holds, at } => self.take(key, owner, *holds, *at),
            Write::HandOver { from, to, at } => self.hand_over(key, [from, to], *at),
            Write::Count {
                owner, mode, holds, ..
            } => self.count(key, owner, *mode, *holds),
            Write::Drop { owner, mode } => self.drop_field(key, owner, *mode),
            Write::Permit { owner, held, pool } => self.permit(key, owner, *held, *pool),
            Write::SetPool(pool) => self.set_mode(key, kind::pool_text(*pool).as_bytes()),
            Write::SetMode(mode) => self.set_mode(key, kind::mode_text(*mode)),
            Write::Lease { owner, index, at } => self.lease(key, owner, *index, *at),
            Write::LeaseAt { owner, index, at } => self.lease_at(key, owner, *index, *at),
            Write::EndLease { owner, index } => self.end_lease(key, owner, *index),
            Write::Fence { token, until } => self.fence(key, *token, *until),
            Write::ExpireAt(at) => self.end_at(key, *at),
            Write::Delete => delete(self.keys.open(key)?, self.to),
        }
    }

    fn take(self, key: &Key, owner: &[u8], holds: i64, at: WallMs) -> Option<bool> {
        let owner = self.keys.given.text(owner)?;
        let other = (holds != 1).then(|| Text::number(holds));
        let holds = match &other {
            None => &self.to.shell.server.one,
            Some(other) => other.as_ref()?,
        };
        let open = open_to_take(self.keys, self.to, key)?;
        if open.is_there() {
            set_field(open, self.to, &owner, holds)?;
            return expire_at(open, self.to, at);
        }
        open.set_field(&owner, Some(holds))?;
        open.expire_at(at)?;
        self.to.send_hash(&open.name, &owner, holds, at)?;
        touched(open, self.to)
    }

    fn hand_over(self, key: &Key, [from, to]: [&[u8]; 2], at: WallMs) -> Option<bool> {
        let (from, to) = (self.keys.given.text(from)?, self.keys.given.text(to)?);
        let one = &self.to.shell.server.one;
        let open = self.keys.open(key).filter(|open| open.is(Type::Hash))?;
        open.replace_field(&from, &to, one)?;
        open.expire_at(at)?;
        self.to.send_hash(&open.name, &to, one, at)?;
        touched(open, self.to)
    }

    /// HSET, not HINCRBY: of a field with an end of its own the one takes it away, as the
    /// server's handle does, and the other leaves it.
    fn count(self, key: &Key, owner: &[u8], mode: Mode, holds: i64) -> Option<bool> {
        let field = field(self.keys, owner, mode)?;
        let value = Text::number(holds)?;
        // A key that is gone meanwhile must not come back without a TTL.
        let open = self.keys.open(key).filter(|open| open.is_there())?;
        set_field(open, self.to, &field, &value)?;
        touched(open, self.to)
    }

    fn drop_field(self, key: &Key, owner: &[u8], mode: Mode) -> Option<bool> {
        let field = field(self.keys, owner, mode)?;
        let Some(open) = self.keys.open(key).filter(|open| open.is_there()) else {
            return Some(false);
        };
        open.set_field(&field, None)?;
        let args = [&open.name, &field];
        self.to.send(To::Everybody, c"HDEL", args, None)?;
        touched(open, self.to)
    }

    fn permit(
        self,
        key: &Key,
        owner: &[u8],
        held: Option<(i64, WallMs)>,
        pool: Option<Pool>,
    ) -> Option<bool> {
        let field = self.keys.given.text(owner)?;
        let mode = Text::new(kind::MODE)?;
        let text = |text: String| Text::new(text.as_bytes());
        let pool = pool.map(|pool| text(kind::pool_text(pool)));
        let open = open_to_take(self.keys, self.to, key)?;
        match (held, pool) {
            (Some((permits, ends)), Some(pool)) => {
                let (pool, held) = (pool?, text(kind::permit_text(permits, ends))?);
                open.set_field(&mode, Some(&pool))?;
                open.set_field(&field, Some(&held))?;
                let args = [&open.name, &mode, &pool, &field, &held];
                self.to.send(To::Everybody, c"HSET", args, None)?;
            }
            (Some((permits, ends)), None) => {
                let held = text(kind::permit_text(permits, ends))?;
                set_field(open, self.to, &field, &held)?;
            }
            (None, pool) => {
                if let Some(pool) = pool {
                    set_field(open, self.to, &mode, &pool?)?;
                }
                open.set_field(&field, None)?;
                let args = [&open.name, &field];
                self.to.send(To::Everybody, c"HDEL", args, None)?;
            }
        }
        touched(open, self.to)
    }

    fn set_mode(self, key: &Key, text: &[u8]) -> Option<bool> {
        let field = Text::new(kind::MODE)?;
        let value = Text::new(text)?;
        let open = open_to_take(self.keys, self.to, key)?;
        set_field(open, self.to, &field, &value)?;
        touched(open, self.to)
    }

    fn lease(self, key: &Key, owner: &[u8], index: i64, at: Option<WallMs>) -> Option<bool> {
        let value = self.keys.given.text(&key.name)?;
        let open = self.keys.open_lease(key, owner, index)?;
        set_string(open, self.to, &value, at)
    }

    fn lease_at(self, key: &Key, owner: &[u8], index: i64, at: WallMs) -> Option<bool> {
        match self.keys.open_lease(key, owner, index) {
            Some(open) if lease_keys::is_of(open, key) => expire_at(open, self.to, at),
            _ => Some(false),
        }
    }

    fn end_lease(self, key: &Key, owner: &[u8], index: i64) -> Option<bool> {
        match self.keys.open_lease(key, owner, index) {
            Some(open) if lease_keys::is_of(open, key) => delete(open, self.to),
            _ => Some(false),
        }
    }

    fn fence(self, key: &Key, token: Token, until: Option<WallMs>) -> Option<bool> {
        let value = Text::number(token.0)?;
        let name = Key::new(key.db, &redisson::counter(&key.name));
        let open = self.keys.open(&name)?;
        // Another key of the same request can be a lock by this name.
        if open.is_there() && !open.is(Type::String) {
            return None;
        }
        let end = match open.expires() {
            // It is to stay.
            None if open.is_there() => None,
            end => end.max(until),
        };
        set_string(open, self.to, &value, end)
    }

    fn end_at(self, key: &Key, at: WallMs) -> Option<bool> {
        let open = self.keys.open(key)?;
        // Run out since it was looked at.
        if !open.is_there() {
            return Some(false);
        }
        expire_at(open, self.to, at)
    }
}

/// The key, for a hold that may be its first. What is left of a hash whose only field
/// has run out is removed: the length of the hash counts it still.
fn open_to_take<'k, 'a>(
    keys: &'k mut OneKey<'a>,
    to: &Replication<'_>,
    key: &Key,
) -> Option<&'k KeyHandle<'a>> {
    let open = keys.open(key)?;
    if open.len() == 1 && open.fields().is_empty() {
        delete(open, to)?;
    }
    Some(open)
}

/// The field that counts an owner's holds in this mode.
fn field<'a>(keys: &OneKey<'a>, owner: &[u8], mode: Mode) -> Option<Text<'a>> {
    match mode {
        Mode::Write => Text::new(&kind::writer_field(owner)),
        Mode::Exclusive | Mode::Read | Mode::Permits => keys.given.text(owner),
    }
}

fn set_field(
    open: &KeyHandle<'_>,
    to: &Replication<'_>,
    field: &Text<'_>,
    value: &Text<'_>,
) -> Option<()> {
    open.set_field(field, Some(value))?;
    to.send(To::Everybody, c"HSET", [&open.name, field, value], None)
}

/// Puts a string there, with an end if it has one.
fn set_string(
    open: &KeyHandle<'_>,
    to: &Replication<'_>,
    value: &Text<'_>,
    at: Option<WallMs>,
) -> Option<bool> {
    open.set_string(value)?;
    if let Some(at) = at {
        open.expire_at(at)?;
        let args = [&open.name, value, &to.shell.server.pxat];
        to.send(To::Everybody, c"SET", args, Some(at.0))?;
    } else {
        to.send(To::Everybody, c"SET", [&open.name, value], None)?;
    }
    touched(open, to)
}

fn expire_at(open: &KeyHandle<'_>, to: &Replication<'_>, at: WallMs) -> Option<bool> {
    open.expire_at(at)?;
    to.send(To::Everybody, c"PEXPIREAT", [&open.name], Some(at.0))?;
    touched(open, to)
}

fn delete(open: &KeyHandle<'_>, to: &Replication<'_>) -> Option<bool> {
    if !open.delete()? {
        return Some(false);
    }
    to.send(To::Everybody, c"DEL", [&open.name], None)?;
    touched(open, to)
}

/// Lets the server know that the open key changed (WATCH, client-side caching). Not left
/// to the server, which would do it for a refused try too.
fn touched(open: &KeyHandle<'_>, to: &Replication<'_>) -> Option<bool> {
    signal_modified(to.ctx, &open.name)?;
    Some(true)
}
