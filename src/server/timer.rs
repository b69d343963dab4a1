//! The one timer of the module: for leases, BLOCK time-outs and whatever was left
//! for later. It is armed for the earliest of them and never stopped early; when
//! it fires with nothing due it is armed anew.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use redis_module::raw;

use super::closing;
use super::ffi::{api, guarded, Ctx};
use super::pending;
use super::serve::{self, Occasion};
use super::shell::{shell, Shell};
use super::version::Wakeup;
use crate::lock::Now;

/// Nothing is waited for longer than this, in ms.
const LONGEST_MS: i64 = 1000;

/// A clock that is slewed runs apart from the other by less than this in the longest
/// wait, ms. One that is stepped by no more makes nothing late that matters.
const SLEW_MS: i64 = 3;

/// What the timer is armed for, by both clocks.
#[derive(Clone, Copy)]
struct Armed {
    id: raw::RedisModuleTimerID,
    mono_us: i64,
    wall_ms: i64,
}

impl Armed {
    /// The wall clock was stepped since. The server keeps its timers by it.
    fn is_off(&self, now: Now) -> bool {
        let by_mono = self.mono_us.saturating_sub(now.mono_us).div_euclid(1000);
        let by_wall = self.wall_ms.saturating_sub(now.wall_ms());
        by_wall.saturating_sub(by_mono).abs() > SLEW_MS
    }
}

#[derive(Default)]
pub struct Timer {
    armed: Cell<Option<Armed>>,
    /// Its callback runs.
    firing: Cell<bool>,
}

impl Timer {
    pub fn is_armed(&self) -> bool {
        self.armed.get().is_some()
    }

    /// After a fault: its callback does not run any more.
    pub fn recover(&self) {
        self.firing.set(false);
    }
}

/// Sees to it that `serve` runs in at most `ms` from now.
pub fn arm(shell: &Shell, ctx: Ctx, now: Now, ms: i64) {
    let ms = ms.clamp(0, LONGEST_MS);
    let at = now.until(ms);
    if let Some(armed) = shell.timer.armed.get() {
        if armed.mono_us <= at {
            return;
        }
        api!(RedisModule_StopTimer(ctx.0, armed.id, ptr::null_mut()));
    }
    let id = api!(RedisModule_CreateTimer(
        ctx.0,
        ms,
        Some(fire),
        ptr::null_mut()
    ));
    shell.timer.armed.set(id.map(|id| Armed {
        id,
        mono_us: at,
        wall_ms: now.deadline(ms),
    }));
    keep_awake(shell);
}

/// Now and then: a timer that the wall clock has left behind, or hurried on, fires at
/// once, and is armed anew for what comes next. So is one that a fault has kept from
/// being armed.
pub fn mend(shell: &Shell, ctx: Ctx) {
    let now = shell.now();
    match shell.timer.armed.get() {
        None => serve::arm_if_forgotten(shell, ctx, now),
        Some(armed) if armed.is_off(now) => {
            api!(RedisModule_StopTimer(ctx.0, armed.id, ptr::null_mut()));
            shell.timer.armed.set(None);
            arm(shell, ctx, now, 0);
        }
        Some(_) => {}
    }
}

/// Whether the timer fires no later than this wall-clock ms, by what it was when
/// the timer was armed. Says so without reading a clock.
pub fn fires_by(shell: &Shell, wall_ms: i64) -> bool {
    let armed = shell.timer.armed.get();
    armed.is_some_and(|armed| armed.wall_ms <= wall_ms)
}

/// Sees to it that `serve` runs as soon as the event loop comes round.
pub fn arm_now(shell: &Shell, ctx: Ctx) {
    if shell.timer.firing.get() {
        return;
    }
    arm(shell, ctx, shell.now(), 0);
    wake_loop(shell);
}

/// Redis 7.0 computes how long it sleeps, then tells us, and only then runs what stood
/// behind a request that was just unblocked. So what comes up there (a timer, a grant)
/// would wait until something else wakes the loop. Unless this turn of it is known not
/// to be that far.
pub fn keep_awake(shell: &Shell) {
    if shell.server.wakeup == Wakeup::BeforeSleep && !shell.awake.get() {
        wake_loop(shell);
    }
}

/// Keeps the event loop from going to sleep this time.
fn wake_loop(shell: &Shell) {
    if shell.pending.wakes.get() > 0 {
        return;
    }
    let status = api!(RedisModule_EventLoopAddOneShot(
        Some(woken),
        ptr::null_mut()
    ));
    if status == Some(raw::REDISMODULE_OK as i32) {
        pending::more(&shell.pending.wakes);
    }
}

unsafe extern "C" fn woken(_data: *mut c_void) {
    if let Some(shell) = shell() {
        pending::less(&shell.pending.wakes);
    }
}

unsafe extern "C" fn fire(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a timer", (), || {
        let Some(shell) = shell() else {
            return;
        };
        // First: a timer that is stopped while it fires is freed twice.
        shell.timer.armed.set(None);
        shell.timer.firing.set(true);
        serve::serve(shell, ctx, Occasion::Timer);
        closing::close_some(shell, ctx);
        shell.timer.firing.set(false);
        serve::arm_for_next(shell, ctx);
    });
}
