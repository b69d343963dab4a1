//! How a function of the module API is found.

/// A function of the module API, if the server has it.
macro_rules! api {
    ($name:ident) => {{
        // SAFETY: the server sets it at load, on this thread, before any code of ours runs,
        // and it never changes after that.
        unsafe { redis_module::raw::$name }
    }};
}
pub(super) use api;
