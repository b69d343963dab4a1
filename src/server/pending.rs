//! What of ours the server has still to call. A library that is gone by then takes the
//! server with it, and the server itself looks at blocked clients and timers only.

use std::cell::Cell;

use redis_module::raw;

use super::ffi::Ctx;
use super::shell::Shell;

#[derive(Default)]
pub struct Pending {
    /// Callbacks of ours that are under way, one in the other.
    pub inside: Cell<u32>,
    /// Jobs that run when the command under way is done.
    pub jobs: Cell<u32>,
    /// Wakes of the event loop.
    pub wakes: Cell<u32>,
}

pub fn more(count: &Cell<u32>) {
    count.set(count.get().saturating_add(1));
}

pub fn less(count: &Cell<u32>) {
    count.set(count.get().saturating_sub(1));
}

/// Why the module cannot be unloaded now, if it cannot.
pub fn forbids_unload(shell: &Shell, ctx: Ctx) -> Option<&'static str> {
    let pending = &shell.pending;
    let in_multi = ctx.flags() & raw::REDISMODULE_CTX_FLAGS_MULTI as i32 != 0;
    let waits = shell.blocked.try_borrow().map_or(true, |b| !b.is_empty());
    let reasons = [
        (in_multi, "commands may follow in this transaction"),
        (pending.inside.get() > 0, "it is at work"),
        (pending.jobs.get() > 0, "it has yet to look at a key"),
        (
            pending.wakes.get() > 0,
            "the event loop is yet to come to it",
        ),
        (shell.timer.is_armed(), "its timer is armed"),
        (waits, "a client waits"),
    ];
    reasons.into_iter().find_map(|(is, why)| is.then_some(why))
}
