//! The server's keyspace as the core sees it, and the core's writes to it.
//!
//! A key is opened once for a request: the handle of the look is used again for
//! the write. Nothing may run between the two that could change the key, so
//! events, publishes and replies wait until all writes are done (`effects`).

use std::ffi::{c_int, c_void};
use std::ptr;

use redis_module::raw;

use super::ffi::{api, bytes_of, Ctx, Given, Selected, Text};
use super::shell::Shell;
use crate::lock::{Foreign, Holder, Key, Keyspace, Kind, Look, Mode};

/// How keys are opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For looking only; legal on a replica.
    Read,
    /// For a decision that may write. A key that has run out is deleted.
    Write,
}

pub struct ServerKeyspace<'a> {
    shell: &'static Shell,
    ctx: Ctx,
    access: Access,
    given: Given<'a>,
    open: Option<Open>,
}

/// An open key.
struct Open {
    key: Key,
    name: Text,
    handle: *mut raw::RedisModuleKey,
    /// The database it lives in stays selected: the server's calls on a handle
    /// and the replication of its writes go by the context's database.
    _db: Selected,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            api!(RedisModule_CloseKey(self.handle));
        }
    }
}

impl<'a> ServerKeyspace<'a> {
    pub fn new(shell: &'static Shell, ctx: Ctx, access: Access, given: Given<'a>) -> Self {
        Self {
            shell,
            ctx,
            access,
            given,
            open: None,
        }
    }

    /// Closes the key that is open, before anything runs that may change it.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// The handle of a key, opened unless it is the one that is open. `None`:
    /// it does not exist (or cannot be opened).
    fn open(&mut self, key: &Key) -> Option<&Open> {
        if self.open.as_ref().is_none_or(|open| open.key != *key) {
            self.open = None;
            let name = self.given.text(&key.name)?;
            let db = Selected::new(self.ctx, key.db);
            let mode = match self.access {
                Access::Read => raw::REDISMODULE_READ,
                Access::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
            };
            let handle = api!(RedisModule_OpenKey(
                self.ctx.0,
                name.as_ptr(),
                mode as c_int
            ))?;
            self.open = Some(Open {
                key: key.clone(),
                name,
                handle,
                _db: db,
            });
        }
        self.open.as_ref().filter(|open| !open.handle.is_null())
    }

    /// HSET key owner holds.
    pub fn set_holds(&mut self, key: &Key, owner: &Text, holds: &Text) -> Option<()> {
        let open = self.open(key)?;
        // SAFETY: see `api!`; pairs of strings end with NULL.
        let set = unsafe { raw::RedisModule_HashSet }?;
        // SAFETY: as above; the handle is open for writing.
        unsafe {
            set(
                open.handle,
                raw::REDISMODULE_HASH_NONE as c_int,
                owner.as_ptr(),
                holds.as_ptr(),
                ptr::null_mut::<c_void>(),
            )
        };
        Some(())
    }

    /// PEXPIREAT key at.
    pub fn expire_at(&mut self, key: &Key, at: i64) -> Option<()> {
        let open = self.open(key)?;
        let status = api!(RedisModule_SetAbsExpire(open.handle, at))?;
        (status == raw::REDISMODULE_OK as c_int).then_some(())
    }

    /// DEL key.
    pub fn delete(&mut self, key: &Key) -> Option<()> {
        let open = self.open(key)?;
        let status = api!(RedisModule_DeleteKey(open.handle))?;
        (status == raw::REDISMODULE_OK as c_int).then_some(())
    }

    /// Tells the server that the open key changed (WATCH, client-side caching).
    /// Not left to the server, which would do it for a refused try too.
    pub fn touched(&self) -> Option<()> {
        let open = self.open.as_ref()?;
        api!(RedisModule_SignalModifiedKey(
            self.ctx.0,
            open.name.as_ptr()
        ))?;
        Some(())
    }
}

impl Keyspace for ServerKeyspace<'_> {
    fn look(&mut self, key: &Key, owner: &[u8]) -> Look {
        let given = self.given;
        let shell = self.shell;
        shell.expired_here.set(false);
        let gone = || Look {
            ran_out: shell.expired_here.get(),
            ..Look::FREE
        };
        let Some(open) = self.open(key) else {
            return gone();
        };
        let kind = api!(RedisModule_KeyType(open.handle)).unwrap_or(0) as u32;
        if kind == raw::REDISMODULE_KEYTYPE_EMPTY as u32 {
            return gone();
        }
        let expires = api!(RedisModule_GetAbsExpire(open.handle)).filter(|at| *at >= 0);
        let look = |kind, holds, shared| Look {
            kind,
            holds,
            shared,
            expires,
            ran_out: false,
        };
        if kind != raw::REDISMODULE_KEYTYPE_HASH as u32 {
            return look(Kind::Foreign(Foreign::OtherType), 0, None);
        }
        let no_lock = look(Kind::Foreign(Foreign::OtherHash), 0, None);
        if api!(RedisModule_ValueLength(open.handle)) == Some(1) {
            // One field: a plain lock, if its value is a count of holds.
            return match given
                .text(owner)
                .and_then(|owner| field(open.handle, &owner))
            {
                Some(value) => match count(value.bytes()) {
                    Some(holds) => look(Kind::Plain, holds, None),
                    None => no_lock,
                },
                None => match fields(open.handle).first() {
                    // Fields can have a TTL of their own on newer servers, and this
                    // one has run out.
                    None => Look::FREE,
                    Some((_, value)) if count(value).is_some() => look(Kind::Plain, 0, None),
                    _ => no_lock,
                },
            };
        }
        let named = |name: &[u8]| field(open.handle, &Text::new(name)?);
        let Some(mode) = named(b"mode").and_then(|mode| shared(mode.bytes())) else {
            return no_lock;
        };
        let held = if named(&[owner, b":write"].concat()).is_some() {
            Some(Mode::Write)
        } else {
            named(owner).map(|_| Mode::Read)
        };
        look(Kind::ReadWrite(mode), 0, held.filter(|_| !owner.is_empty()))
    }

    fn holders(&mut self, key: &Key) -> Vec<Holder> {
        let Some(open) = self.open(key) else {
            return Vec::new();
        };
        let kind = api!(RedisModule_KeyType(open.handle)).unwrap_or(0) as u32;
        if kind != raw::REDISMODULE_KEYTYPE_HASH as u32 {
            return Vec::new();
        }
        let fields = fields(open.handle);
        let plain = fields.len() == 1;
        fields
            .into_iter()
            .filter_map(|(field, value)| {
                let holds = count(&value)?;
                let (owner, mode) = match field.strip_suffix(b":write") {
                    _ if plain => (field, Mode::Exclusive),
                    Some(owner) => (owner.to_vec(), Mode::Write),
                    None => (field, Mode::Read),
                };
                Some(Holder { owner, mode, holds })
            })
            .collect()
    }
}

/// A number of holds: a positive integer as the server writes it. HINCRBY, which
/// replicas get, takes no other.
fn count(value: &[u8]) -> Option<i64> {
    if !matches!(value.first(), Some(b'1'..=b'9')) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The mode of a read/write lock, from its field `mode`.
fn shared(value: &[u8]) -> Option<Mode> {
    match value {
        b"read" => Some(Mode::Read),
        b"write" => Some(Mode::Write),
        _ => None,
    }
}

/// One field of an open hash.
fn field(handle: *mut raw::RedisModuleKey, name: &Text) -> Option<Text> {
    let mut value: *mut raw::RedisModuleString = ptr::null_mut();
    // SAFETY: see `api!`; a field and where to put its value, ended by NULL.
    let get = unsafe { raw::RedisModule_HashGet }?;
    // SAFETY: as above; the handle is open and holds a hash.
    unsafe {
        get(
            handle,
            raw::REDISMODULE_HASH_NONE as c_int,
            name.as_ptr(),
            &raw mut value,
            ptr::null_mut::<c_void>(),
        )
    };
    Text::adopt(value)
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// All fields of an open hash.
fn fields(handle: *mut raw::RedisModuleKey) -> Fields {
    let mut found = Fields::new();
    let Some(cursor) = api!(RedisModule_ScanCursorCreate()) else {
        return found;
    };
    let into = (&raw mut found).cast::<c_void>();
    while api!(RedisModule_ScanKey(handle, cursor, Some(collect), into)).unwrap_or(0) != 0 {}
    api!(RedisModule_ScanCursorDestroy(cursor));
    found
}

unsafe extern "C" fn collect(
    _key: *mut raw::RedisModuleKey,
    field: *mut raw::RedisModuleString,
    value: *mut raw::RedisModuleString,
    into: *mut c_void,
) {
    if field.is_null() || value.is_null() {
        return;
    }
    // SAFETY: `into` is the list that `fields` holds while it scans; the strings
    // live until this returns.
    unsafe {
        let found = &mut *into.cast::<Fields>();
        found.push((bytes_of(field).to_vec(), bytes_of(value).to_vec()));
    }
}
