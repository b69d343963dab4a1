//! What the server calls later: timers, a turn of the event loop.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;

use super::api::{api, OK};
use super::ctx::Ctx;
use super::guard::callback;

/// A function that is called later.
pub type LaterFn = for<'a> fn(Ctx<'a>);

/// A timer. Dropping it does not stop it.
pub struct Timer(Rc<TimerSlot>);

/// Ours and the server's.
struct TimerSlot {
    /// Until it fires or is stopped: one that is stopped while it fires is freed twice.
    id: Cell<Option<raw::RedisModuleTimerID>>,
    run: LaterFn,
}

impl Timer {
    /// Starts one that fires in so many ms.
    pub fn start(ctx: Ctx<'_>, ms: i64, run: LaterFn) -> Option<Self> {
        let call = api!(RedisModule_CreateTimer)?;
        let slot = Rc::new(TimerSlot {
            id: Cell::new(None),
            run,
        });
        let data = Rc::into_raw(Rc::clone(&slot)).cast_mut().cast::<c_void>();
        // SAFETY: the context is valid; `fire` gets the slot that it expects, once.
        slot.id
            .set(Some(unsafe { call(ctx.as_ptr(), ms, Some(fire), data) }));
        Some(Self(slot))
    }

    /// Stops it, unless it has fired.
    pub fn stop(self, ctx: Ctx<'_>) {
        let (Some(id), Some(call)) = (self.0.id.take(), api!(RedisModule_StopTimer)) else {
            return;
        };
        let mut data = ptr::null_mut();
        // SAFETY: the context is valid, and the timer has neither fired nor been stopped.
        let status = unsafe { call(ctx.as_ptr(), id, &raw mut data) };
        if status == OK && !data.is_null() {
            // SAFETY: the server gives back what `start` gave it, and does not call `fire`.
            drop(unsafe { Rc::from_raw(data.cast::<TimerSlot>()) });
        }
    }
}

/// # Safety
/// `data` is a slot, which is ours now.
unsafe extern "C" fn fire(ctx: *mut raw::RedisModuleCtx, data: *mut c_void) {
    // SAFETY: as the caller says.
    let slot = unsafe { Rc::from_raw(data.cast::<TimerSlot>()) };
    slot.id.set(None);
    // SAFETY: the server passes it to this callback.
    unsafe { callback(ctx, "a timer", slot.run) };
}

/// The event loop has something to do that has nothing to do.
static KEPT_AWAKE: AtomicBool = AtomicBool::new(false);

/// Keeps the event loop from going to sleep this time.
pub fn keep_loop_awake() {
    if loop_is_kept_awake() {
        return;
    }
    let is_kept = api!(RedisModule_EventLoopAddOneShot).is_some_and(|call| {
        // SAFETY: the callback takes nothing.
        unsafe { call(Some(woken), ptr::null_mut()) == OK }
    });
    KEPT_AWAKE.store(is_kept, Ordering::Relaxed);
}

/// Whether the event loop is yet to come to that.
pub fn loop_is_kept_awake() -> bool {
    KEPT_AWAKE.load(Ordering::Relaxed)
}

unsafe extern "C" fn woken(_data: *mut c_void) {
    KEPT_AWAKE.store(false, Ordering::Relaxed);
}
