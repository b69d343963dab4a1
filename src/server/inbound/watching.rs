//! What the server is asked to tell us, by what there is to watch for: nothing
//! while nobody waits and no hold belongs to a connection, for each kind of event
//! costs something each time.

use super::{advice, server_events};
use crate::lock::{Core, ROUND_MS};
use crate::server::run::schedule::{self, IDLE_MS};
use crate::server::shell::Shell;
use crate::server::state::clock;
use crate::server::sys::Ctx;

/// Subscribes to what the locks there are need now. What is not needed any more is
/// let go by [`relax`], a while later.
pub fn update(shell: &Shell, ctx: Ctx<'_>) {
    if !shell.subscriptions.clients.get() {
        server_events::watch_clients(shell, ctx);
        shell.alarm.arm(ctx, clock::now(), IDLE_MS);
    }
    if shell.locks.ask(Core::is_watching).unwrap_or(false) {
        if !server_events::watch_overwrites(shell, ctx) {
            shell.alarm.arm(ctx, clock::now(), ROUND_MS);
        }
        advice::watchdog_in_use(shell, ctx);
    }
}

/// After a command: the timer is armed for what comes next, and if a waiter with WATCHDOG
/// was granted, that is watched.
pub fn after_command(shell: &Shell, ctx: Ctx<'_>) {
    let watching = schedule::arm_after_command(shell, ctx);
    if watching && !shell.subscriptions.overwrites.get() {
        update(shell, ctx);
    }
}

/// After a turn of the timer: lets go of what is not needed any more, and subscribes
/// to what a grant has made necessary.
pub fn relax(shell: &Shell, ctx: Ctx<'_>) {
    let known = shell
        .locks
        .ask(|core| (core.is_watching(), core.waiting() > 0));
    let Some((watching, waiting)) = known else {
        return;
    };
    if !watching {
        server_events::unwatch_overwrites(shell, ctx);
    } else if !shell.subscriptions.overwrites.get() {
        update(shell, ctx);
    }
    if !watching && !waiting && shell.clients.none_waits() {
        server_events::unwatch_clients(shell, ctx);
    }
}
