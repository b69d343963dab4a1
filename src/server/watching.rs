//! What the server is asked to tell us, by what there is to watch for: nothing
//! while nobody waits and no hold belongs to a connection, for each kind of event
//! costs something each time.

use super::ffi::Ctx;
use super::shell::Shell;
use super::{events, key_events, serve, surroundings, timer};

/// Subscribes to what the locks there are need now. What is not needed any more is
/// let go by [`relax`], a while later.
pub fn update(shell: &Shell, ctx: Ctx) {
    if !shell.watching_clients.get() {
        events::watch_clients(shell, ctx);
        timer::arm(shell, ctx, shell.now(), serve::IDLE_MS);
    }
    let watching = shell.core.try_borrow().is_ok_and(|core| core.is_watching());
    if watching {
        if !key_events::watch_overwrites(shell, ctx) {
            timer::arm(shell, ctx, shell.now(), serve::CHECK_MS);
        }
        surroundings::watchdog_in_use(shell, ctx);
    }
}

/// After a turn of the timer: lets go of what is not needed any more, and subscribes
/// to what a grant has made necessary.
pub fn relax(shell: &Shell, ctx: Ctx) {
    let (watching, waiting) = match shell.core.try_borrow() {
        Ok(core) => (core.is_watching(), core.waiting() > 0),
        Err(_) => return,
    };
    if !watching {
        key_events::unwatch_overwrites(shell, ctx);
    } else if !shell.watching_overwrites.get() {
        update(shell, ctx);
    }
    let settled = shell.blocked.try_borrow().is_ok_and(|b| b.is_empty());
    if !watching && !waiting && settled {
        events::unwatch_clients(shell, ctx);
    }
}
