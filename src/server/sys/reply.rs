//! Replies to the client whose command or time-out runs. Where there is no client the
//! server ignores them.

use std::ffi::{c_long, CString};

use super::api::api;
use super::ctx::Ctx;

pub fn integer(ctx: Ctx<'_>, value: i64) {
    if let Some(call) = api!(RedisModule_ReplyWithLongLong) {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr(), value) };
    }
}

/// The null bulk (`$-1`; RESP3 `_`).
pub fn null(ctx: Ctx<'_>) {
    if let Some(call) = api!(RedisModule_ReplyWithNull) {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr()) };
    }
}

pub fn text(ctx: Ctx<'_>, bytes: &[u8]) {
    if let Some(call) = api!(RedisModule_ReplyWithStringBuffer) {
        // SAFETY: the context is valid; the server copies so many bytes.
        unsafe { call(ctx.as_ptr(), bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// So many replies follow.
pub fn array(ctx: Ctx<'_>, len: usize) {
    if let Some(call) = api!(RedisModule_ReplyWithArray) {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr(), len as c_long) };
    }
}

/// So many pairs of replies follow. In RESP2 a flat array.
pub fn map(ctx: Ctx<'_>, len: usize) {
    match api!(RedisModule_ReplyWithMap) {
        Some(call) => {
            // SAFETY: the context is valid.
            unsafe { call(ctx.as_ptr(), len as c_long) };
        }
        None => array(ctx, len.saturating_mul(2)),
    }
}

/// A line without NUL that starts with the error's code.
pub fn error(ctx: Ctx<'_>, line: &str) {
    let line = CString::new(line).unwrap_or_default();
    if let Some(call) = api!(RedisModule_ReplyWithError) {
        // SAFETY: the context is valid; the server copies the C string.
        unsafe { call(ctx.as_ptr(), line.as_ptr()) };
    }
}
