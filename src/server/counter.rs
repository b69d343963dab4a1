//! The fencing counter of a lock, `redisson_lock_token:{lock}`: a string that holds
//! the last token. Looked up for every hold that begins, so that it must be cheap
//! where there is none.

use redis_module::raw;

use super::ffi::{api, Ctx, Selected, Text};
use crate::lock::{Counter, Key};
use crate::redisson;

/// Reads it.
pub fn read(ctx: Ctx, lock: &Key, cluster: bool) -> Counter {
    if cluster && !redisson::counter_fits(&lock.name) {
        return Counter::Elsewhere;
    }
    let Some(name) = Text::new(&redisson::counter(&lock.name)) else {
        return Counter::Unusable;
    };
    let _db = Selected::new(ctx, lock.db);
    // For writing: such a look counts as no miss, and deletes one that has run out.
    let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
    let handle = api!(RedisModule_OpenKey(ctx.0, name.as_ptr(), mode as i32));
    let Some(handle) = handle.filter(|handle| !handle.is_null()) else {
        return Counter::Absent;
    };
    let counter = match api!(RedisModule_KeyType(handle)).map(|kind| kind as isize) {
        None | Some(raw::REDISMODULE_KEYTYPE_EMPTY) => Counter::Absent,
        Some(raw::REDISMODULE_KEYTYPE_STRING) => {
            value(handle).map_or(Counter::Unusable, Counter::At)
        }
        Some(_) => Counter::Unusable,
    };
    api!(RedisModule_CloseKey(handle));
    counter
}

fn value(handle: *mut raw::RedisModuleKey) -> Option<i64> {
    let mut len = 0;
    let data = api!(RedisModule_StringDMA(
        handle,
        &raw mut len,
        raw::REDISMODULE_READ as i32
    ));
    let data = data.filter(|data| !data.is_null())?;
    // SAFETY: the server says that `len` bytes stand there, until the key is closed
    // or changed.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    let text = std::str::from_utf8(bytes).ok()?;
    // As the server writes it: INCR takes nothing else.
    text.parse().ok().filter(|n: &i64| n.to_string() == text)
}
