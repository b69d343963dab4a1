//! Replies to the client whose command or time-out runs. Where there is no client the
//! server ignores them.

use std::ffi::{c_long, CStr};

use redis_module::raw;

use super::api::api;
use super::ctx::Ctx;

pub fn integer(ctx: Ctx<'_>, value: i64) {
    raw::reply_with_long_long(ctx.as_ptr(), value);
}

/// The null bulk (`$-1`; RESP3 `_`).
pub fn null(ctx: Ctx<'_>) {
    raw::reply_with_null(ctx.as_ptr());
}

pub fn text(ctx: Ctx<'_>, bytes: &[u8]) {
    raw::reply_with_string_buffer(ctx.as_ptr(), bytes.as_ptr().cast(), bytes.len());
}

/// A word that is no data.
pub fn status(ctx: Ctx<'_>, word: &'static CStr) {
    if let Some(call) = api!(RedisModule_ReplyWithSimpleString) {
        // SAFETY: the context is valid, the word a C string.
        unsafe { call(ctx.as_ptr(), word.as_ptr()) };
    }
}

/// So many replies follow.
pub fn array(ctx: Ctx<'_>, len: usize) {
    raw::reply_with_array(ctx.as_ptr(), len as c_long);
}

/// So many pairs of replies follow. In RESP2 a flat array.
pub fn map(ctx: Ctx<'_>, len: usize) {
    raw::reply_with_map(ctx.as_ptr(), len as c_long);
}

/// A line that starts with the error's code.
pub fn error(ctx: Ctx<'_>, line: &str) {
    ctx.context().reply_error_string(line);
}
