//! Leaves notes of what was seen, and sees to it that they are read: right after
//! the command that caused them, where the server can do that, else by the timer.

use std::ffi::{c_int, c_void};
use std::ptr;

use redis_module::raw;

use super::ffi::{api, guarded, Ctx};
use super::pending;
use super::serve::{self, Occasion};
use super::shell::{shell, Shell};
use super::timer;
use crate::lock::{Cause, Key, Note};

/// Leaves notes.
pub fn leave(shell: &Shell, ctx: Ctx, notes: impl IntoIterator<Item = Note>, after: After) {
    let Ok(mut inbox) = shell.inbox.try_borrow_mut() else {
        return;
    };
    notes.into_iter().for_each(|note| inbox.push(note));
    // In a cluster a job sees the slot of the command that it belongs to, and no other.
    let by_job = after == After::Command && shell.server.jobs && !shell.server.cluster;
    if by_job && shell.pending.jobs.get() > 0 {
        return;
    }
    let status = by_job.then(|| {
        api!(RedisModule_AddPostNotificationJob(
            ctx.0,
            Some(on_job),
            ptr::null_mut(),
            None
        ))
    });
    if status == Some(Some(raw::REDISMODULE_OK as c_int)) {
        pending::more(&shell.pending.jobs);
        return;
    }
    drop(inbox);
    timer::arm_now(shell, ctx);
}

/// After what notes are to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The command under way. Its effects and ours replicate as one.
    Command,
    /// This turn of the event loop: the cause may be a command that replicates
    /// its effects one by one (SCAN finding a key that ran out), and a replica
    /// cut off in between would have a lock without a lease.
    Turn,
}

unsafe extern "C" fn on_job(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a job", (), || {
        let Some(shell) = shell() else {
            return;
        };
        pending::less(&shell.pending.jobs);
        serve::serve(shell, ctx, Occasion::Job);
        serve::arm_for_next(shell, ctx);
    });
}

/// Leaves a note that a key may have changed.
pub fn changed(shell: &Shell, ctx: Ctx, key: Key, cause: Cause, after: After) {
    leave(shell, ctx, [Note::Changed(key, cause)], after);
}
