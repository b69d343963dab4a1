//! Leaves notes of what was seen, and sees to it that they are read: right after
//! the command that caused them, where the server can do that, else by the timer.

use crate::lock::{Cause, Key, Note};
use crate::server::shell::Shell;
use crate::server::state::Read;
use crate::server::sys::Ctx;

/// Leaves notes.
pub fn leave(shell: &Shell, ctx: Ctx<'_>, notes: impl IntoIterator<Item = Note>, read: Read) {
    notes.into_iter().for_each(|note| shell.inbox.push(note));
    let by_job = read == Read::AfterCommand && shell.server.jobs;
    if !(by_job && shell.alarm.add_job(ctx)) {
        shell.alarm.arm_now(ctx);
    }
}

/// Leaves a note that a key may have changed.
pub fn changed(shell: &Shell, ctx: Ctx<'_>, key: Key, cause: Cause, read: Read) {
    leave(shell, ctx, [Note::Changed(key, cause)], read);
}
