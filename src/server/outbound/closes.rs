//! Closes connections that lost a lock which their watchdog kept: *connection open
//! means lock held*. And writes to the log what was lost.
//!
//! The timer does it, never the command that found the loss: the server
//! closes the client whose command runs only after the next one that it sends.

use crate::config;
use crate::lock::ClientId;
use crate::server::shell::ServerShell;
use crate::server::sys::Ctx;

/// So many connections are closed and lines written in one go.
const BATCH: usize = 128;

/// Has a connection closed as soon as the timer runs, unless the operator wants to
/// keep such connections: whether that is so.
pub fn close_soon(shell: &ServerShell, ctx: Ctx<'_>, client: ClientId) -> bool {
    let closes = config::closes_on_loss();
    if closes {
        shell.clients.close(client);
        shell.alarm.arm_now(ctx);
    }
    closes
}

/// Closes the next of those that are due. The server frees them before it sleeps.
pub fn close_some(shell: &ServerShell, ctx: Ctx<'_>) {
    for line in shell.outbox.take_lines(BATCH) {
        ctx.notice(&line);
    }
    for client in shell.clients.take_closing(BATCH) {
        ctx.close_client(client);
    }
}
