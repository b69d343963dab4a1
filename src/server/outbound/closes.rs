//! Closes connections that lost a lock which their watchdog kept: *connection open
//! means lock held*.
//!
//! The timer does it, never the command or job that found the loss: the server
//! closes the client whose command runs only after the next one that it sends.

use crate::config;
use crate::lock::ClientId;
use crate::server::shell::Shell;
use crate::server::sys::Ctx;

/// So many connections are closed in one go: each is a line in the server's log.
const BATCH: usize = 128;

/// Has a connection closed as soon as the timer runs, unless the operator wants to
/// keep such connections.
pub fn close_soon(shell: &Shell, ctx: Ctx<'_>, client: ClientId) {
    if config::closes_on_loss() {
        shell.clients.close(client);
        shell.alarm.arm_now(ctx);
    }
}

/// Closes the next of those that are due. The server frees them before it sleeps.
pub fn close_some(shell: &Shell, ctx: Ctx<'_>) {
    for client in shell.clients.take_closing(BATCH) {
        if ctx.close_client(client) {
            ctx.notice(&format!(
                "rlock: client {client} lost a lock that its watchdog kept; closing its \
                 connection (rlock.watchdog-lost)"
            ));
        }
    }
}
