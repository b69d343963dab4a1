//! How a function of the module API is found, and what it returns.

use std::ffi::c_int;

/// A function of the module API, if the server has it.
macro_rules! api {
    ($name:ident) => {{
        // SAFETY: the server sets it at load, on this thread, before any code of ours runs,
        // and it never changes after that.
        unsafe { redis_module::raw::$name }
    }};
}
pub(super) use api;

/// Done, says a function that can refuse, and a callback of ours.
pub(super) const OK: c_int = redis_module::raw::REDISMODULE_OK as c_int;
