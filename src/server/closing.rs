//! Closes connections that lost a lock which their watchdog kept: *connection open
//! means lock held*.
//!
//! The timer does it, never the command or job that found the loss: the server
//! closes the client whose command runs only after the next one that it sends.

use super::ffi::{api, Ctx};
use super::shell::Shell;
use super::timer;
use crate::config;
use redis_module::raw;

/// So many connections are closed in one go: each is a line in the server's log.
const BATCH: usize = 128;

/// Has a connection closed as soon as the timer runs, unless the operator wants to
/// keep such connections.
pub fn close_soon(shell: &Shell, ctx: Ctx, client: u64) {
    if !config::closes_on_loss() {
        return;
    }
    if let Ok(mut closing) = shell.closing.try_borrow_mut() {
        closing.insert(client);
    }
    timer::arm_now(shell, ctx);
}

/// Whether connections are to be closed yet.
pub fn is_due(shell: &Shell) -> bool {
    let closing = shell.closing.try_borrow();
    closing.is_ok_and(|closing| !closing.is_empty())
}

/// Closes the next of those that are due. The server frees them before it sleeps.
pub fn close_some(shell: &Shell, ctx: Ctx) {
    let next: Vec<u64> = match shell.closing.try_borrow_mut() {
        Ok(mut closing) => std::iter::from_fn(|| closing.pop_first())
            .take(BATCH)
            .collect(),
        Err(_) => return,
    };
    for client in next {
        let status = api!(RedisModule_DeauthenticateAndCloseClient(ctx.0, client));
        if status == Some(raw::REDISMODULE_OK as i32) {
            ctx.notice(&format!(
                "rlock: client {client} lost a lock that its watchdog kept; closing its \
                 connection (rlock.watchdog-lost)"
            ));
        }
    }
}
