//! The context of one callback, and what is asked of it alone: the database, the client,
//! flags, the log.

use std::ffi::{c_int, CStr};
use std::marker::PhantomData;
use std::ptr::NonNull;

use redis_module::{raw, Context, ContextFlags};

use super::api::{api, OK};
use crate::lock::ClientId;

/// The server's context of one callback, which cannot outlive it. It cannot leave its thread
/// either: that one has the server's lock until the callback returns.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    ctx: NonNull<raw::RedisModuleCtx>,
    callback: PhantomData<&'a raw::RedisModuleCtx>,
}

impl<'a> Ctx<'a> {
    /// `None`: the server has passed none.
    ///
    /// # Safety
    /// The server has passed it to a callback that does not return before the end of `'a`.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Option<Self> {
        NonNull::new(ctx).map(|ctx| Self {
            ctx,
            callback: PhantomData,
        })
    }

    pub(super) fn as_ptr(self) -> *mut raw::RedisModuleCtx {
        self.ctx.as_ptr()
    }

    /// The same for the wrappers of `redis-module` that are sound with it.
    pub(super) fn context(self) -> Context {
        Context::new(self.as_ptr())
    }

    /// Lends it to what registers settings.
    pub fn with_context<T>(self, using: impl FnOnce(&Context) -> T) -> T {
        using(&self.context())
    }

    /// The database that is selected.
    pub fn db(self) -> i32 {
        api!(RedisModule_GetSelectedDb).map_or(0, |call| {
            // SAFETY: the context is valid.
            unsafe { call(self.as_ptr()) }
        })
    }

    /// `false`: there is no such database.
    pub fn select(self, db: i32) -> bool {
        api!(RedisModule_SelectDb).is_some_and(|call| {
            // SAFETY: the context is valid; a number of no database is refused.
            unsafe { call(self.as_ptr(), db as c_int) == OK }
        })
    }

    /// How many keys the database of this number has; `None`: there is no such database.
    pub fn keys_in(self, db: i32) -> Option<u64> {
        let count = api!(RedisModule_DbSize)?;
        let back = self.db();
        let has = self.select(db);
        // SAFETY: the context is valid.
        let keys = has.then(|| unsafe { count(self.as_ptr()) });
        self.select(back);
        keys
    }

    pub fn flags(self) -> ContextFlags {
        self.context().get_flags()
    }

    /// The command that runs is a client's own: not in MULTI, a script, a function or
    /// another module. There it may block.
    pub fn stands_alone(self) -> bool {
        let within = ContextFlags::LUA | ContextFlags::MULTI | ContextFlags::DENY_BLOCKING;
        !self.flags().intersects(within)
    }

    /// The client whose command runs speaks RESP3.
    pub fn speaks_resp3(self) -> bool {
        // Not among the flags of `redis-module`.
        let flags = api!(RedisModule_GetContextFlags).map_or(0, |call| {
            // SAFETY: the context is valid.
            unsafe { call(self.as_ptr()) }
        });
        flags & raw::REDISMODULE_CTX_FLAGS_RESP3 as c_int != 0
    }

    /// CLIENT PAUSE, FAILOVER, a shutdown or a slot migration is under way: nothing may be
    /// replicated.
    pub fn avoids_replica_traffic(self) -> bool {
        self.context().avoid_replication_traffic()
    }

    /// The client whose command runs, if one does.
    pub fn client(self) -> Option<ClientId> {
        let id = api!(RedisModule_GetClientId).map(|call| {
            // SAFETY: the context is valid.
            unsafe { call(self.as_ptr()) }
        });
        id.and_then(ClientId::new)
    }

    /// Closes a client's connection. Whether there was one.
    pub fn close_client(self, client: ClientId) -> bool {
        api!(RedisModule_DeauthenticateAndCloseClient).is_some_and(|call| {
            // SAFETY: the context is valid; an id of no client is refused.
            unsafe { call(self.as_ptr(), client.get()) == OK }
        })
    }

    /// Writes a line to the server's log.
    pub fn log(self, level: &CStr, text: &str) {
        log(Some(self), level, text);
    }

    pub fn warn(self, text: &str) {
        self.log(c"warning", text);
    }

    pub fn notice(self, text: &str) {
        self.log(c"notice", text);
    }
}

pub(super) fn log(ctx: Option<Ctx<'_>>, level: &CStr, text: &str) {
    let line: Vec<u8> = text.bytes().filter(|byte| *byte != 0).chain([0]).collect();
    let (Ok(line), Some(call)) = (CStr::from_bytes_with_nul(&line), api!(RedisModule_Log)) else {
        return;
    };
    let ctx = ctx.map_or(std::ptr::null_mut(), Ctx::as_ptr);
    // SAFETY: a context that is valid, or none; the format takes exactly one C string.
    unsafe { call(ctx, level.as_ptr(), c"%s".as_ptr(), line.as_ptr()) };
}

/// Selects a database for as long as it lives. The context may be a real client's, which
/// must find its own database selected afterwards.
pub struct Selected<'a> {
    ctx: Ctx<'a>,
    back: Option<i32>,
}

impl<'a> Selected<'a> {
    pub fn new(ctx: Ctx<'a>, db: i32) -> Self {
        let now = ctx.db();
        let back = (now != db).then_some(now);
        if back.is_some() {
            ctx.select(db);
        }
        Self { ctx, back }
    }
}

impl Drop for Selected<'_> {
    fn drop(&mut self) {
        if let Some(db) = self.back {
            self.ctx.select(db);
        }
    }
}
