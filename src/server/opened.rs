//! An open key, and all that the server is asked of it.
//!
//! The handle is not to be had outside of this file. What needs a key that exists, or
//! one of some type, asks for the type first, and each time: Redis 8.2 crashes when it
//! is asked for the TTL of a key that is not there, and a key can go while it is open,
//! with its last field for one.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::ffi::{api, bytes_of, Ctx, Text};

/// How keys are opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For looking only; legal on a replica.
    Read,
    /// For a decision that may write. A key that has run out is deleted.
    Write,
}

/// What lies at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Hash,
    String,
    List,
    Other,
}

/// Closed when it is dropped.
pub struct Opened(NonNull<raw::RedisModuleKey>);

pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

impl Opened {
    /// Opens a key of the database that is selected, and that stays selected. One that
    /// does not exist is opened only for writing.
    pub fn new(ctx: Ctx, name: &Text, access: Access) -> Option<Self> {
        let mode = match access {
            Access::Read => raw::REDISMODULE_READ,
            Access::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        let handle = api!(RedisModule_OpenKey(ctx.0, name.as_ptr(), mode as c_int))?;
        NonNull::new(handle).map(Self)
    }

    fn handle(&self) -> *mut raw::RedisModuleKey {
        self.0.as_ptr()
    }

    /// `None`: there is no such key.
    pub fn kind(&self) -> Option<Type> {
        match api!(RedisModule_KeyType(self.handle()))? as isize {
            raw::REDISMODULE_KEYTYPE_EMPTY => None,
            raw::REDISMODULE_KEYTYPE_HASH => Some(Type::Hash),
            raw::REDISMODULE_KEYTYPE_STRING => Some(Type::String),
            raw::REDISMODULE_KEYTYPE_LIST => Some(Type::List),
            _ => Some(Type::Other),
        }
    }

    pub fn is_there(&self) -> bool {
        self.kind().is_some()
    }

    pub fn is(&self, kind: Type) -> bool {
        self.kind() == Some(kind)
    }

    /// When it ends, in wall-clock ms; `None`: it has no TTL.
    pub fn expires(&self) -> Option<i64> {
        self.kind()?;
        api!(RedisModule_GetAbsExpire(self.handle())).filter(|at| *at >= 0)
    }

    /// Fields of a hash, bytes of a string.
    pub fn len(&self) -> usize {
        let len = self
            .kind()
            .and_then(|_| api!(RedisModule_ValueLength(self.handle())));
        len.unwrap_or(0)
    }

    /// Gives a key that exists another end. `None`: it was refused.
    pub fn expire_at(&self, at: i64) -> Option<()> {
        self.kind()?;
        done(api!(RedisModule_SetAbsExpire(self.handle(), at))?)
    }

    /// `None`: it was refused, or there is no such key.
    pub fn delete(&self) -> Option<()> {
        self.kind()?;
        done(api!(RedisModule_DeleteKey(self.handle()))?)
    }

    /// Puts a string in the place of whatever is there.
    pub fn set_string(&self, value: &Text) -> Option<()> {
        done(api!(RedisModule_StringSet(self.handle(), value.as_ptr()))?)
    }

    /// Reads the string that is there. The key must be open for writing: the server may
    /// store it in another way to show it.
    pub fn string<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if !self.is(Type::String) {
            return None;
        }
        let mut len = 0;
        let data = api!(RedisModule_StringDMA(
            self.handle(),
            &raw mut len,
            raw::REDISMODULE_READ as c_int
        ));
        let data = data.filter(|data| !data.is_null())?;
        // SAFETY: the server says that `len` bytes stand there, until the key is closed
        // or changed.
        Some(read(unsafe {
            std::slice::from_raw_parts(data.cast::<u8>(), len)
        }))
    }

    /// One field of the hash that is there.
    pub fn field(&self, name: &Text) -> Option<Text> {
        if !self.is(Type::Hash) {
            return None;
        }
        let mut value: *mut raw::RedisModuleString = ptr::null_mut();
        // SAFETY: see `api!`; a field and where to put its value, ended by NULL.
        let get = unsafe { raw::RedisModule_HashGet }?;
        // SAFETY: as above; the handle is open and holds a hash.
        unsafe {
            get(
                self.handle(),
                raw::REDISMODULE_HASH_NONE as c_int,
                name.as_ptr(),
                &raw mut value,
                ptr::null_mut::<c_void>(),
            )
        };
        Text::adopt(value)
    }

    /// All fields of the hash that is there.
    pub fn fields(&self) -> Fields {
        let mut found = Fields::new();
        if !self.is(Type::Hash) {
            return found;
        }
        let Some(cursor) = api!(RedisModule_ScanCursorCreate()) else {
            return found;
        };
        let (handle, into) = (self.handle(), (&raw mut found).cast::<c_void>());
        while api!(RedisModule_ScanKey(handle, cursor, Some(collect), into)).unwrap_or(0) != 0 {}
        api!(RedisModule_ScanCursorDestroy(cursor));
        found
    }

    /// Sets one field of the hash that is there, or of a new one; `None` as the value
    /// removes the field. `None`: something else is there.
    pub fn set_field(&self, name: &Text, value: Option<&Text>) -> Option<()> {
        match (self.kind(), value) {
            (Some(Type::Hash), _) | (None, Some(_)) => {}
            (None, None) => return Some(()),
            (Some(_), _) => return None,
        }
        // What the server means by REDISMODULE_HASH_DELETE.
        let delete = ptr::without_provenance_mut::<raw::RedisModuleString>(1);
        // SAFETY: see `api!`; pairs of strings end with NULL.
        let set = unsafe { raw::RedisModule_HashSet }?;
        // SAFETY: as above; the handle is open for writing.
        unsafe {
            set(
                self.handle(),
                raw::REDISMODULE_HASH_NONE as c_int,
                name.as_ptr(),
                value.map_or(delete, Text::as_ptr),
                ptr::null_mut::<c_void>(),
            )
        };
        Some(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        api!(RedisModule_CloseKey(self.handle()));
    }
}

fn done(status: c_int) -> Option<()> {
    (status == raw::REDISMODULE_OK as c_int).then_some(())
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
