//! The core's writes to the keyspace: each at the moment of its decision, and
//! replicated as the plain command it amounts to.

use super::ffi::{api, Ctx, Text};
use super::hash;
use super::keyspace::{Open, ServerKeyspace};
use super::lease_keys;
use super::opened::Type;
use super::replication as replicate;
use crate::lock::{Effect, Key, Mode};
use crate::redisson;

/// What became of a write that the server did not refuse.
enum Written {
    Done,
    /// There was nothing to write.
    Needless,
}

impl ServerKeyspace<'_> {
    /// Carries out an effect that is a write. One that changed nothing is noted, so
    /// that nobody is told of it. Whether it was written.
    pub(super) fn carry_out(&mut self, effect: &Effect) -> bool {
        let shell = self.shell;
        // A nested call of ours can be under way, in somebody's event callback.
        let before = shell.writing.replace(true);
        let written = self.try_to(effect);
        shell.writing.set(before);
        if matches!(written, Some(Written::Done)) {
            return true;
        }
        if written.is_none() {
            let text = format!("rlock: the server refused a write: {effect:?}");
            self.ctx.warn(&text);
        }
        if let Ok(mut unwritten) = shell.unwritten.try_borrow_mut() {
            unwritten.push_back(effect.clone());
        }
        false
    }

    /// `None`: the server refused.
    fn try_to(&mut self, effect: &Effect) -> Option<Written> {
        let (ctx, given) = (self.ctx, self.given);
        match effect {
            Effect::Take {
                key,
                owner,
                holds,
                at,
            } => {
                let owner = given.text(owner)?;
                let other = (*holds != 1).then(|| Text::new(holds.to_string().as_bytes()));
                let shell = self.shell;
                let holds = match &other {
                    None => &shell.one,
                    Some(other) => other.as_ref()?,
                };
                let open = self.open_to_take(key)?;
                open.set_field(&owner, Some(holds))?;
                replicate::hset(ctx, key.db, &open.name, &owner, holds)?;
                expire_at(open, ctx, key, *at)?;
                touched(open, ctx)
            }
            Effect::Count {
                key,
                owner,
                mode,
                holds,
                by,
            } => {
                let field = self.field(owner, *mode)?;
                let value = Text::new(holds.to_string().as_bytes())?;
                // A key that is gone meanwhile must not come back without a TTL.
                let open = self.open(key).filter(|open| open.is_there())?;
                open.set_field(&field, Some(&value))?;
                if holds == by {
                    replicate::hset(ctx, key.db, &open.name, &field, &value)?;
                } else {
                    replicate::hincrby(ctx, key.db, &open.name, &field, *by)?;
                }
                touched(open, ctx)
            }
            Effect::Drop { key, owner, mode } => {
                let field = self.field(owner, *mode)?;
                let Some(open) = self.open(key).filter(|open| open.is_there()) else {
                    return Some(Written::Needless);
                };
                open.set_field(&field, None)?;
                replicate::hdel(ctx, key.db, &open.name, &field)?;
                touched(open, ctx)
            }
            Effect::SetMode { key, mode } => {
                let (field, value) = (Text::new(hash::MODE)?, mode_text(*mode)?);
                let open = self.open_to_take(key)?;
                open.set_field(&field, Some(&value))?;
                replicate::hset(ctx, key.db, &open.name, &field, &value)?;
                touched(open, ctx)
            }
            Effect::Lease {
                key,
                owner,
                index,
                at,
            } => {
                let value = given.text(&key.name)?;
                let open = self.open_lease(key, owner, *index)?;
                open.set_string(&value)?;
                if let Some(at) = at {
                    open.expire_at(*at)?;
                }
                replicate::set(ctx, key.db, &open.name, &value, *at)?;
                touched(open, ctx)
            }
            Effect::LeaseAt {
                key,
                owner,
                index,
                at,
            } => match self.open_lease(key, owner, *index) {
                Some(open) if lease_keys::is_of(open, key) => {
                    expire_at(open, ctx, key, *at)?;
                    touched(open, ctx)
                }
                _ => Some(Written::Needless),
            },
            Effect::EndLease { key, owner, index } => match self.open_lease(key, owner, *index) {
                Some(open) if lease_keys::is_of(open, key) => delete(open, ctx, key),
                _ => Some(Written::Needless),
            },
            Effect::Fence { key, token } => {
                let value = Text::new(token.to_string().as_bytes())?;
                let name = Key::new(key.db, &redisson::counter(&key.name));
                let open = self.open(&name)?;
                // Another key of the same request can be a lock by this name.
                if open.is_there() && !open.is(Type::String) {
                    return None;
                }
                let expires = open.expires();
                open.set_string(&value)?;
                if let Some(at) = expires {
                    open.expire_at(at)?;
                }
                replicate::set(ctx, key.db, &open.name, &value, expires)?;
                touched(open, ctx)
            }
            Effect::ExpireAt { key, at } => {
                let open = self.open(key)?;
                // Run out since it was looked at.
                if !open.is_there() {
                    return Some(Written::Needless);
                }
                expire_at(open, ctx, key, *at)?;
                touched(open, ctx)
            }
            Effect::Delete { key } => delete(self.open(key)?, ctx, key),
            Effect::Tell { .. }
            | Effect::Wake { .. }
            | Effect::Passed { .. }
            | Effect::Answer { .. }
            | Effect::Close { .. } => Some(Written::Done),
        }
    }

    /// The key, for a hold that may be its first. What is left of a hash whose only
    /// field has run out is removed: the length of the hash counts it still.
    fn open_to_take(&mut self, key: &Key) -> Option<&Open> {
        let ctx = self.ctx;
        let open = self.open(key)?;
        if open.len() == 1 && open.fields().is_empty() {
            delete(open, ctx, key)?;
        }
        Some(open)
    }

    /// The field that counts an owner's holds.
    fn field(&self, owner: &[u8], mode: Mode) -> Option<Text> {
        match mode {
            Mode::Write => Text::new(&[owner, hash::WRITER].concat()),
            Mode::Exclusive | Mode::Read => self.given.text(owner),
        }
    }
}

fn mode_text(mode: Mode) -> Option<Text> {
    Text::new(match mode {
        Mode::Write => b"write",
        Mode::Exclusive | Mode::Read => b"read",
    })
}

fn expire_at(open: &Open, ctx: Ctx, key: &Key, at: i64) -> Option<()> {
    open.expire_at(at)?;
    replicate::pexpireat(ctx, key.db, &open.name, at)
}

fn delete(open: &Open, ctx: Ctx, key: &Key) -> Option<Written> {
    if !open.is_there() {
        return Some(Written::Needless);
    }
    open.delete()?;
    replicate::del(ctx, key.db, &open.name)?;
    touched(open, ctx)
}

/// Tells the server that the open key changed (WATCH, client-side caching). Not left
/// to the server, which would do it for a refused try too.
fn touched(open: &Open, ctx: Ctx) -> Option<Written> {
    api!(RedisModule_SignalModifiedKey(ctx.0, open.name.as_ptr()))?;
    Some(Written::Done)
}
