//! Clients that are blocked on keys: how they are woken, and how their waits end.
//!
//! The server itself ends a wait when the client goes, is unblocked by hand, or is
//! redirected, and its handle is dead from then on: to use it once more crashes the
//! server. So the handle lies in a place that both sides know, and whoever ends the wait
//! takes it out.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::rc::Rc;

use redis_module::raw;

use super::api::{api, OK};
use super::ctx::Ctx;
use super::guard::callback;
use super::reply;
use super::text::Text;
use crate::lock::WaiterId;

/// What the server calls about the clients that we have blocked, with the request that waits.
pub trait OnBlocked {
    /// The wait is over, by our waking or by the server's doing: writes the reply.
    fn reply(ctx: Ctx<'_>, waiter: WaiterId);
    /// The server ends the wait: the client went, was unblocked with an error, or was sent
    /// elsewhere.
    fn disconnected(ctx: Ctx<'_>, waiter: WaiterId);
    /// The server is done with the blocked client. `gone`: the client is, too; its
    /// context has no client then, and nothing may be written by it.
    fn freed(ctx: Ctx<'_>, waiter: WaiterId, gone: bool);
}

/// A blocked client.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked(Rc<BlockedSlot>);

/// Ours and the server's.
#[derive(Debug, PartialEq)]
struct BlockedSlot {
    waiter: WaiterId,
    /// Until the wait is ended.
    handle: Cell<Option<NonNull<raw::RedisModuleBlockedClient>>>,
}

/// Blocks the client whose command runs, without a time-out of the server's. `None`: the
/// server does not let it wait.
pub fn block<H: OnBlocked>(ctx: Ctx<'_>, keys: &[Text<'_>], waiter: WaiterId) -> Option<Blocked> {
    let call = api!(RedisModule_BlockClientOnKeys)?;
    let mut names: Vec<_> = keys.iter().map(Text::as_ptr).collect();
    let len = c_int::try_from(names.len()).ok()?;
    let slot = Rc::new(BlockedSlot {
        waiter,
        handle: Cell::new(None),
    });
    let data = Rc::into_raw(Rc::clone(&slot)).cast_mut().cast::<c_void>();
    // SAFETY: the context is valid, there are `len` strings, and the callbacks get the slot
    // that they expect.
    let handle = unsafe {
        call(
            ctx.as_ptr(),
            Some(on_ready),
            Some(on_time_out::<H>),
            Some(on_free::<H>),
            0,
            names.as_mut_ptr(),
            len,
            data,
        )
    };
    let Some(handle) = NonNull::new(handle) else {
        // SAFETY: made above; a server that blocks nobody has not kept it.
        drop(unsafe { Rc::from_raw(data.cast::<BlockedSlot>()) });
        return None;
    };
    if let Some(call) = api!(RedisModule_SetDisconnectCallback) {
        // SAFETY: the handle is new; the callback gets the slot that it expects.
        unsafe { call(handle.as_ptr(), Some(on_disconnect::<H>)) };
    }
    slot.handle.set(Some(handle));
    Some(Blocked(slot))
}

impl Blocked {
    /// One whose wait has ended, for tests.
    #[cfg(test)]
    pub fn ended() -> Self {
        Self(Rc::new(BlockedSlot {
            waiter: WaiterId::FIRST,
            handle: Cell::new(None),
        }))
    }

    /// Ends the wait, unless it has ended: the client gets its reply.
    pub fn wake(&self) {
        if let (Some(handle), Some(call)) = (self.0.handle.take(), api!(RedisModule_UnblockClient))
        {
            // SAFETY: neither we nor the server have ended the wait: the handle was there.
            unsafe { call(handle.as_ptr(), ptr::null_mut()) };
        }
    }
}

/// The request of the blocked client whose callback runs. Its wait is over.
///
/// # Safety
/// The context is that of a callback of a client that `block` blocked.
unsafe fn over(ctx: Ctx<'_>) -> Option<WaiterId> {
    let call = api!(RedisModule_GetBlockedClientPrivateData)?;
    // SAFETY: the context is valid.
    let data = unsafe { call(ctx.as_ptr()) };
    // SAFETY: null, or the slot that `block` gave, which `on_free` has not taken yet.
    let slot = unsafe { data.cast::<BlockedSlot>().as_ref() }?;
    slot.handle.set(None);
    Some(slot.waiter)
}

/// The key became something that the server signals as ready (a list, say): no matter of
/// ours, the client stays blocked.
unsafe extern "C" fn on_ready(
    _ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    raw::REDISMODULE_ERR as c_int
}

/// # Safety
/// For `block`.
unsafe extern "C" fn on_time_out<H: OnBlocked>(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    let reply = |ctx: Ctx<'_>| {
        // SAFETY: this is a callback of a blocked client.
        match unsafe { over(ctx) } {
            Some(waiter) => H::reply(ctx, waiter),
            None => reply::null(ctx),
        }
    };
    // SAFETY: the server passes it to this callback.
    unsafe { callback(ctx, "a reply", reply) };
    OK
}

/// # Safety
/// For `block`.
unsafe extern "C" fn on_disconnect<H: OnBlocked>(
    ctx: *mut raw::RedisModuleCtx,
    _handle: *mut raw::RedisModuleBlockedClient,
) {
    let end = |ctx: Ctx<'_>| {
        // SAFETY: this is a callback of a blocked client.
        if let Some(waiter) = unsafe { over(ctx) } {
            H::disconnected(ctx, waiter);
        }
    };
    // SAFETY: the server passes it to this callback.
    unsafe { callback(ctx, "a disconnect", end) };
}

/// # Safety
/// For `block`: `data` is the server's slot, which is ours now.
unsafe extern "C" fn on_free<H: OnBlocked>(ctx: *mut raw::RedisModuleCtx, data: *mut c_void) {
    // SAFETY: as the caller says.
    let slot = unsafe { Rc::from_raw(data.cast::<BlockedSlot>()) };
    slot.handle.set(None);
    let end = |ctx: Ctx<'_>| {
        let gone = api!(RedisModule_BlockedClientDisconnected).map(|call| {
            // SAFETY: the context is valid.
            unsafe { call(ctx.as_ptr()) }
        });
        H::freed(ctx, slot.waiter, gone.unwrap_or(0) != 0);
    };
    // SAFETY: the server passes it to this callback.
    unsafe { callback(ctx, "a blocked client's end", end) };
}
