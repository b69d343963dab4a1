//! How the hash of a lock is read: counts of holds, the mode, the fields.

use std::ffi::{c_int, c_void};
use std::ptr;

use redis_module::raw;

use super::ffi::{api, bytes_of, Text};
use crate::lock::Mode;

/// The field of a read/write lock that says which it is.
pub const MODE: &[u8] = b"mode";

/// A writer's field is its owner's id with this behind it.
pub const WRITER: &[u8] = b":write";

/// The mode of a read/write lock, from its field `mode`.
pub fn mode_of(value: &[u8]) -> Option<Mode> {
    match value {
        b"read" => Some(Mode::Read),
        b"write" => Some(Mode::Write),
        _ => None,
    }
}

/// Whether somebody can hold a read/write lock by this name: any other would be
/// taken for a field of another meaning.
pub fn is_owner(name: &[u8]) -> bool {
    !name.is_empty() && name != MODE && !name.ends_with(WRITER)
}

/// A number of holds: a positive integer as the server writes it. HINCRBY, which
/// replicas get, takes no other.
pub fn count(value: &[u8]) -> Option<i64> {
    if !matches!(value.first(), Some(b'1'..=b'9')) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What a field counts: 0 if there is none. `None`: it is no count.
pub fn counted(value: Option<Text>) -> Option<i64> {
    value.map_or(Some(0), |value| count(value.bytes()))
}

/// One field of an open hash.
pub fn field(handle: *mut raw::RedisModuleKey, name: &Text) -> Option<Text> {
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

/// Sets one field of an open hash, or of a key that does not exist; `None` as the
/// value removes the field.
pub fn set_field(
    handle: *mut raw::RedisModuleKey,
    name: &Text,
    value: Option<&Text>,
) -> Option<()> {
    // What the server means by REDISMODULE_HASH_DELETE.
    let delete = ptr::without_provenance_mut::<raw::RedisModuleString>(1);
    // SAFETY: see `api!`; pairs of strings end with NULL.
    let set = unsafe { raw::RedisModule_HashSet }?;
    // SAFETY: as above; the handle is open for writing.
    unsafe {
        set(
            handle,
            raw::REDISMODULE_HASH_NONE as c_int,
            name.as_ptr(),
            value.map_or(delete, Text::as_ptr),
            ptr::null_mut::<c_void>(),
        )
    };
    Some(())
}

pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// All fields of an open hash.
pub fn fields(handle: *mut raw::RedisModuleKey) -> Fields {
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
