//! Walking the keys of a database, some at a time.
//!
//! The server hands over each key open for reading, and closes it: that is no access (it
//! counts neither as a hit nor for LRU), and no key expires by it. On every server that is
//! supported this is one step of the table that SCAN goes through, with the same promise:
//! a key that is there all the time is passed at least once, whatever else comes and goes,
//! is flushed or moved to another database. One step is one place of the table, and as many
//! as fall together in it while the table is made smaller.

use std::ffi::c_void;
use std::ptr::NonNull;

use redis_module::raw;

use super::api::api;
use super::ctx::Ctx;
use super::guard::guarded;
use super::key::{lent, OpenKey};
use super::text::bytes_of;

/// How far a walk has come.
pub struct Scan(NonNull<raw::RedisModuleScanCursor>);

/// What is done with each key: its name and, where the server hands it over, the key.
type Each<'a> = dyn FnMut(&[u8], Option<&OpenKey<'_>>) + 'a;

impl Scan {
    /// `None`: this server cannot.
    pub fn new() -> Option<Self> {
        let create = api!(RedisModule_ScanCursorCreate)?;
        api!(RedisModule_Scan)?;
        // SAFETY: it takes nothing.
        NonNull::new(unsafe { create() }).map(Self)
    }

    /// One step through the database that is selected. While `each` runs a key is open.
    /// `false`: that was the last.
    pub fn step(&mut self, ctx: Ctx<'_>, mut each: &mut Each<'_>) -> bool {
        let Some(scan) = api!(RedisModule_Scan) else {
            return false;
        };
        let into = (&raw mut each).cast::<c_void>();
        // SAFETY: the context is valid, the cursor is ours, and `on_key` gets what it
        // expects, which lives until this returns.
        unsafe { scan(ctx.as_ptr(), self.0.as_ptr(), Some(on_key), into) != 0 }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        if let Some(destroy) = api!(RedisModule_ScanCursorDestroy) {
            // SAFETY: it was made by `new`, and is not used any more.
            unsafe { destroy(self.0.as_ptr()) };
        }
    }
}

/// # Safety
/// For the server, in [`Scan::step`]: `each` is a pointer to what that was given.
unsafe extern "C" fn on_key(
    _ctx: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
    key: *mut raw::RedisModuleKey,
    each: *mut c_void,
) {
    if name.is_null() || each.is_null() {
        return;
    }
    // SAFETY: as the caller says; nobody else uses it meanwhile.
    let each = unsafe { &mut *each.cast::<&mut Each<'_>>() };
    // SAFETY: the server keeps the name until this returns.
    let name = unsafe { bytes_of(name) };
    guarded(None, "a walk through keys", || {
        // SAFETY: null, or open until this returns.
        unsafe { lent(key, |key| each(name, key)) };
    });
}
