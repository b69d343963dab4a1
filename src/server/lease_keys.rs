//! The lease keys of readers: `{lock}:owner:rwlock_timeout:i`, one for each read
//! hold, a string that holds the lock's name. Redisson writes `1` instead.

use redis_module::raw;

use super::ffi::api;
use super::keyspace::Open;
use crate::lock::{Key, Lease};

/// What Redisson writes.
const REDISSON: &[u8] = b"1";

/// Until when an open lease key keeps a reader of the lock.
///
/// Of the value only the length is looked at: to read it the server would have to
/// copy it, and nobody is refused a lease key by this look.
pub fn lease(open: &Open, lock: &Key) -> Lease {
    if !could_be_of(open, lock) {
        return Lease::Gone;
    }
    open.expires().map_or(Lease::Endless, Lease::Until)
}

fn could_be_of(open: &Open, lock: &Key) -> bool {
    open.kind() == raw::REDISMODULE_KEYTYPE_STRING as u32
        && [lock.name.len(), REDISSON.len()].contains(&open.len())
}

/// Whether an open key is a lease key of this lock. The key must be open for writing:
/// the server may store it in another way to show its value.
pub fn is_of(open: &Open, lock: &Key) -> bool {
    if !could_be_of(open, lock) {
        return false;
    }
    let mut len = 0;
    let data = api!(RedisModule_StringDMA(
        open.handle,
        &raw mut len,
        raw::REDISMODULE_READ as i32
    ));
    let Some(data) = data.filter(|data| !data.is_null()) else {
        return false;
    };
    // SAFETY: the server says that `len` bytes stand there, until the key is
    // closed or changed.
    let value = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    *value == *lock.name || value == REDISSON
}
