//! The section `rlock` of INFO: what has happened since the module was loaded, and
//! what is under way.

use std::ffi::{c_int, CStr};
use std::ptr;

use redis_module::raw;

use super::ffi::{api, guarded, Ctx};
use super::shell::shell;
use crate::lock::Stats;

/// Tells the server whom to ask, in place of what redis-module has told it.
pub fn register(ctx: Ctx) {
    api!(RedisModule_RegisterInfoFunc(ctx.0, Some(on_info)));
}

/// The fields, in the order in which they are shown; the server puts `rlock_` before
/// each name.
fn fields(stats: &Stats) -> [(&'static CStr, u64); 18] {
    [
        (c"acquired", stats.acquired),
        (c"contended", stats.contended),
        (c"granted_after_wait", stats.granted),
        (c"timed_out", stats.timed_out),
        (c"released", stats.released),
        (c"renewed", stats.renewed),
        (c"expired", stats.expired),
        (c"forced", stats.forced),
        (c"evicted", stats.evicted),
        (c"deadlocks_refused", stats.deadlocks),
        (c"grants_taken_back", stats.taken_back),
        (c"redisson_turns", stats.turns),
        (c"redisson_turns_used", stats.turns_used),
        (c"waiting", stats.waiting),
        (c"watchdog_holds", stats.watched),
        (c"wait_p50_us", stats.wait_p50_us),
        (c"wait_p99_us", stats.wait_p99_us),
        (c"wait_max_us", stats.wait_max_us),
    ]
}

/// Also called for a crash report, when our own code may be what crashed: then, or
/// with the core in use, it says nothing.
unsafe extern "C" fn on_info(info: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    // The server gives no context, and needs none to log.
    let stats = guarded(Ctx(ptr::null_mut()), "INFO", None, || {
        let shell = shell().filter(|_| for_crash_report == 0)?;
        Some(shell.core.try_borrow().ok()?.stats())
    });
    let Some(stats) = stats else {
        return;
    };
    // Another section was asked for.
    let added = api!(RedisModule_InfoAddSection(info, ptr::null()));
    if added != Some(raw::REDISMODULE_OK as c_int) {
        return;
    }
    for (name, value) in fields(&stats) {
        api!(RedisModule_InfoAddFieldULongLong(
            info,
            name.as_ptr(),
            value
        ));
    }
}
