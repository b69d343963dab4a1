//! Replies to the client whose command or time-out runs. Where there is no client the
//! server ignores them.

use std::ffi::c_long;

use redis_module::raw;

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
