//! Owned handles for what the server hands out by pointer, and the few calls that
//! every other file here needs. Each function of the API is looked up before it
//! is called: an older server may lack it.

use std::cell::Cell;
use std::ffi::{c_char, c_int, CStr};
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::pending;

/// The server's context of one callback. Copied freely, valid only until the
/// callback returns.
#[derive(Clone, Copy)]
pub struct Ctx(pub *mut raw::RedisModuleCtx);

/// Calls a function of the module API if the server has it; `None` if not.
macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: the pointer was set by the server at load and never changes.
        let function = unsafe { redis_module::raw::$name };
        // SAFETY: the arguments are what the server's documentation asks for;
        // each caller says what is not obvious.
        function.map(|call| unsafe { call($($arg),*) })
    }};
}
pub(crate) use api;

/// Whether the server has a function of the API.
macro_rules! has {
    ($name:ident) => {{
        // SAFETY: see `api!`.
        unsafe { redis_module::raw::$name }.is_some()
    }};
}
pub(crate) use has;

/// A server string: our own, freed at the end, or one that the server keeps for
/// as long as the command runs.
pub struct Text {
    text: NonNull<raw::RedisModuleString>,
    owned: bool,
}

impl Text {
    /// A new string. `None` when the server cannot make one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let made = api!(RedisModule_CreateString(
            ptr::null_mut(),
            bytes.as_ptr().cast::<c_char>(),
            bytes.len(),
        ))?;
        Self::adopt(made)
    }

    /// Takes over a string that the server gave us to free.
    pub fn adopt(text: *mut raw::RedisModuleString) -> Option<Self> {
        NonNull::new(text).map(|text| Self { text, owned: true })
    }

    pub fn as_ptr(&self) -> *mut raw::RedisModuleString {
        self.text.as_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the string lives as long as `self`.
        unsafe { bytes_of(self.text.as_ptr()) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if self.owned {
            api!(RedisModule_FreeString(ptr::null_mut(), self.text.as_ptr()));
        }
    }
}

/// One argument of a command: its bytes, and the server's string.
#[derive(Clone, Copy)]
pub struct Arg<'a> {
    pub bytes: &'a [u8],
    pub text: *mut raw::RedisModuleString,
}

/// The first arguments of the command that runs, if one does. A name or an owner
/// that is among them need not be made into a server string again: most of what
/// an uncontended lock costs is allocation.
#[derive(Clone, Copy, Default)]
pub struct Given<'a>(pub &'a [Arg<'a>]);

impl Given<'_> {
    pub fn text(self, bytes: &[u8]) -> Option<Text> {
        let same = self.0.iter().find(|arg| arg.bytes == bytes);
        match same.and_then(|arg| NonNull::new(arg.text)) {
            Some(text) => Some(Text { text, owned: false }),
            None => Text::new(bytes),
        }
    }
}

/// The bytes of a server string.
///
/// # Safety
/// The string must stay alive and unchanged for `'a`.
pub unsafe fn bytes_of<'a>(text: *const raw::RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    let data = api!(RedisModule_StringPtrLen(text, &raw mut len)).unwrap_or(ptr::null());
    if data.is_null() {
        return &[];
    }
    // SAFETY: the server says that `len` bytes stand there.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }
}

impl Ctx {
    /// The database that is selected.
    pub fn db(self) -> i32 {
        api!(RedisModule_GetSelectedDb(self.0)).unwrap_or(0)
    }

    pub fn select(self, db: i32) {
        api!(RedisModule_SelectDb(self.0, db as c_int));
    }

    /// The flags of `RedisModule_GetContextFlags`.
    pub fn flags(self) -> i32 {
        api!(RedisModule_GetContextFlags(self.0)).unwrap_or(0)
    }

    /// The id of the client whose command runs; 0: none.
    pub fn client_id(self) -> u64 {
        api!(RedisModule_GetClientId(self.0)).unwrap_or(0)
    }

    /// Writes a line to the server's log.
    pub fn log(self, level: &CStr, text: &str) {
        let line: Vec<u8> = text.bytes().filter(|byte| *byte != 0).chain([0]).collect();
        if let Ok(line) = CStr::from_bytes_with_nul(&line) {
            // SAFETY: see `api!`; the format takes exactly one C string.
            let function = unsafe { raw::RedisModule_Log };
            if let Some(log) = function {
                // SAFETY: as above.
                unsafe { log(self.0, level.as_ptr(), c"%s".as_ptr(), line.as_ptr()) };
            }
        }
    }

    pub fn warn(self, text: &str) {
        self.log(c"warning", text);
    }

    pub fn notice(self, text: &str) {
        self.log(c"notice", text);
    }
}

/// Selects a database for as long as it lives. The context may be a real
/// client's, which must find its own database selected afterwards.
pub struct Selected {
    ctx: Ctx,
    back: Option<i32>,
}

impl Selected {
    pub fn new(ctx: Ctx, db: i32) -> Self {
        let now = ctx.db();
        if now == db {
            return Self { ctx, back: None };
        }
        ctx.select(db);
        Self {
            ctx,
            back: Some(now),
        }
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        if let Some(db) = self.back {
            self.ctx.select(db);
        }
    }
}

/// Runs a callback so that no panic crosses into the server, where it would take
/// everybody's data down. There is none that we know of.
pub fn guarded<T>(ctx: Ctx, what: &str, otherwise: T, run: impl FnOnce() -> T) -> T {
    let count = |step: fn(&Cell<u32>)| {
        if let Some(shell) = super::shell::shell() {
            step(&shell.pending.inside);
        }
    };
    count(pending::more);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    count(pending::less);
    match result {
        Ok(value) => value,
        Err(_) => {
            ctx.warn(&format!("rlock: a fault in {what}; please report it"));
            if let Some(shell) = super::shell::shell() {
                shell.recover();
            }
            otherwise
        }
    }
}
