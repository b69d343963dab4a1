//! An open key, and all that the server is asked of it.
//!
//! What needs a key that exists, or one of some type, asks for the type first, and each
//! time: Redis 8.2 crashes when it is asked for the TTL of a key that is not there, and a
//! key can go while it is open, with its last field for one.
//!
//! A key that somebody else changes while it is open leaves a handle that means nothing.
//! So as long as one is open no command is called and no event is emitted (`call` asks
//! [`any_is_open`]). Two keys may be open at once, but never one of them twice: only the
//! reader of counters opens a second one, by a name that no lock of its has.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::api::{api, OK};
use super::count::Gauge;
use super::ctx::Ctx;
use super::text::{bytes_of, Text};
use crate::lock::WallMs;

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

/// So many keys are open.
static OPEN: Gauge = Gauge::zero();

pub(super) fn any_is_open() -> bool {
    OPEN.get() > 0
}

/// Closed when it is dropped, before the callback is over that opened it.
pub struct OpenKey<'a> {
    key: NonNull<raw::RedisModuleKey>,
    ctx: PhantomData<Ctx<'a>>,
}

pub type HashFields = Vec<(Vec<u8>, Vec<u8>)>;

impl<'a> OpenKey<'a> {
    /// Opens a key of the database that is selected, and that stays selected. One that
    /// does not exist is opened only for writing.
    pub fn new(ctx: Ctx<'a>, name: &Text<'_>, access: Access) -> Option<Self> {
        let mode = match access {
            // Whoever looks on is no reason for the server to keep a key rather than another.
            Access::Read => raw::REDISMODULE_READ | raw::REDISMODULE_OPEN_KEY_NOTOUCH,
            Access::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        let call = api!(RedisModule_OpenKey)?;
        // SAFETY: context and name are valid.
        let key = NonNull::new(unsafe { call(ctx.as_ptr(), name.as_ptr(), mode as c_int) })?;
        OPEN.more();
        Some(Self {
            key,
            ctx: PhantomData,
        })
    }

    fn as_ptr(&self) -> *mut raw::RedisModuleKey {
        self.key.as_ptr()
    }

    /// `None`: there is no such key.
    pub fn kind(&self) -> Option<Type> {
        let call = api!(RedisModule_KeyType)?;
        // SAFETY: the key is open.
        match unsafe { call(self.as_ptr()) } as isize {
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

    /// When it ends; `None`: it has no TTL.
    pub fn expires(&self) -> Option<WallMs> {
        self.kind()?;
        let call = api!(RedisModule_GetAbsExpire)?;
        // SAFETY: the key is open and exists.
        let at = unsafe { call(self.as_ptr()) };
        (at >= 0).then_some(WallMs(at))
    }

    /// Fields of a hash, bytes of a string.
    pub fn len(&self) -> usize {
        let call = api!(RedisModule_ValueLength).filter(|_| self.is_there());
        call.map_or(0, |call| {
            // SAFETY: the key is open and exists.
            unsafe { call(self.as_ptr()) }
        })
    }

    /// Gives a key that exists another end. `None`: it was refused.
    pub fn expire_at(&self, at: WallMs) -> Option<()> {
        self.kind()?;
        let call = api!(RedisModule_SetAbsExpire)?;
        // SAFETY: the key is open and exists; one that is not open for writing refuses.
        done(unsafe { call(self.as_ptr(), at.0) })
    }

    /// Whether there was such a key. `None`: it was refused.
    pub fn delete(&self) -> Option<bool> {
        let call = api!(RedisModule_DeleteKey)?;
        if !self.is_there() {
            return Some(false);
        }
        // SAFETY: the key is open and exists; one that is not open for writing refuses.
        done(unsafe { call(self.as_ptr()) }).map(|()| true)
    }

    /// Puts a string in the place of whatever is there.
    pub fn set_string(&self, value: &Text<'_>) -> Option<()> {
        let call = api!(RedisModule_StringSet)?;
        // SAFETY: the key is open, one that is not open for writing refuses; the server
        // holds the value by a count of its own.
        done(unsafe { call(self.as_ptr(), value.as_ptr()) })
    }

    /// Reads the string that is there. The key must be open for writing: the server may
    /// store it in another way to show it.
    pub fn string<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if !self.is(Type::String) {
            return None;
        }
        let call = api!(RedisModule_StringDMA)?;
        let mut len = 0;
        let mode = raw::REDISMODULE_READ as c_int;
        // SAFETY: the key is open and holds a string.
        let data = unsafe { call(self.as_ptr(), &raw mut len, mode) };
        if data.is_null() {
            return None;
        }
        // SAFETY: the server says that `len` bytes stand there, until the key is closed or
        // changed, and `read` sees them before that.
        Some(read(unsafe {
            std::slice::from_raw_parts(data.cast::<u8>(), len)
        }))
    }

    /// One field of the hash that is there.
    pub fn field(&self, name: &Text<'_>) -> Option<Text<'static>> {
        if !self.is(Type::Hash) {
            return None;
        }
        let call = api!(RedisModule_HashGet)?;
        let mut value: *mut raw::RedisModuleString = ptr::null_mut();
        // SAFETY: the key is open and holds a hash; a field and where to put its value,
        // ended by NULL.
        unsafe {
            call(
                self.as_ptr(),
                raw::REDISMODULE_HASH_NONE as c_int,
                name.as_ptr(),
                &raw mut value,
                ptr::null_mut::<c_void>(),
            )
        };
        // SAFETY: null, or a string that is ours now.
        unsafe { Text::adopt(value) }
    }

    /// All fields of the hash that is there.
    pub fn fields(&self) -> HashFields {
        self.fields_within(usize::MAX)
    }

    /// Those that are found in so many steps: a hash that was large has a large table still.
    pub fn fields_within(&self, steps: usize) -> HashFields {
        let mut found = HashFields::new();
        let (Some(create), Some(scan), Some(destroy)) = (
            api!(RedisModule_ScanCursorCreate),
            api!(RedisModule_ScanKey),
            api!(RedisModule_ScanCursorDestroy),
        ) else {
            return found;
        };
        if !self.is(Type::Hash) {
            return found;
        }
        // SAFETY: it takes nothing.
        let cursor = unsafe { create() };
        let into = (&raw mut found).cast::<c_void>();
        // SAFETY: the key is open and holds a hash, the cursor is new, and `collect` gets
        // the list that it expects.
        let step = || unsafe { scan(self.as_ptr(), cursor, Some(collect), into) } != 0;
        let _ = (0..steps).all(|_| step());
        // SAFETY: it was made above and is not used any more.
        unsafe { destroy(cursor) };
        found
    }

    /// Sets one field of the hash that is there, or of a new one; `None` as the value
    /// removes the field. `None`: something else is there.
    pub fn set_field(&self, name: &Text<'_>, value: Option<&Text<'_>>) -> Option<()> {
        match (self.kind(), value) {
            (Some(Type::Hash), _) | (None, Some(_)) => {}
            (None, None) => return Some(()),
            (Some(_), _) => return None,
        }
        let call = api!(RedisModule_HashSet)?;
        // SAFETY: the key is open, one that is not open for writing refuses; it holds a
        // hash or nothing; a field and its value, ended by NULL.
        unsafe {
            call(
                self.as_ptr(),
                raw::REDISMODULE_HASH_NONE as c_int,
                name.as_ptr(),
                value.map_or(DELETE_FIELD, Text::as_ptr),
                ptr::null_mut::<c_void>(),
            )
        };
        Some(())
    }

    /// One field of the hash that is there goes, and another one comes. `None`: something else
    /// is there.
    pub fn replace_field(&self, old: &Text<'_>, new: &Text<'_>, value: &Text<'_>) -> Option<()> {
        if !self.is(Type::Hash) {
            return None;
        }
        let call = api!(RedisModule_HashSet)?;
        // SAFETY: as in `set_field`, for two fields. The new one comes first, so that the hash is
        // never empty.
        unsafe {
            call(
                self.as_ptr(),
                raw::REDISMODULE_HASH_NONE as c_int,
                new.as_ptr(),
                value.as_ptr(),
                old.as_ptr(),
                DELETE_FIELD,
                ptr::null_mut::<c_void>(),
            )
        };
        Some(())
    }
}

/// What the server means by REDISMODULE_HASH_DELETE.
const DELETE_FIELD: *mut raw::RedisModuleString = ptr::without_provenance_mut(1);

impl Drop for OpenKey<'_> {
    fn drop(&mut self) {
        OPEN.less();
        if let Some(call) = api!(RedisModule_CloseKey) {
            // SAFETY: it is open, and not used after this.
            unsafe { call(self.as_ptr()) };
        }
    }
}

/// Runs this with a key that the server has open, if it does.
///
/// # Safety
/// The key is null, or open until this returns.
pub(super) unsafe fn lent<T>(
    key: *mut raw::RedisModuleKey,
    run: impl FnOnce(Option<&OpenKey<'_>>) -> T,
) -> T {
    // The server closes it.
    let key = NonNull::new(key).map(|key| {
        ManuallyDrop::new(OpenKey {
            key,
            ctx: PhantomData,
        })
    });
    let _open = OPEN.one();
    run(key.as_deref())
}

fn done(status: c_int) -> Option<()> {
    (status == OK).then_some(())
}

/// # Safety
/// `into` is a list of fields that nobody else uses.
unsafe extern "C" fn collect(
    _key: *mut raw::RedisModuleKey,
    field: *mut raw::RedisModuleString,
    value: *mut raw::RedisModuleString,
    into: *mut c_void,
) {
    if field.is_null() || value.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let found = unsafe { &mut *into.cast::<HashFields>() };
    // SAFETY: both strings live until this returns.
    let pair = unsafe { (bytes_of(field), bytes_of(value)) };
    found.push((pair.0.to_vec(), pair.1.to_vec()));
}
