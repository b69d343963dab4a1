//! Blocked clients: how a request waits in the server, and how its reply gets out.
//!
//! A waiter is a client blocked on the lock's key, without a time-out of the
//! server's: our own timer is exact, the server's is not. However a wait ends by
//! our doing (granted, timed out, refused), the client is woken the same way, and
//! its time-out callback writes the reply that was settled. The server itself ends
//! a wait when the client goes, is unblocked by hand, or is redirected.

use super::replication::Replication;
use super::reply::Responder;
use crate::lock::{self, ClientId, Note, Outcome, WaiterId};
use crate::server::shell::{ServerShell, SHELL};
use crate::server::state::{WaitEnd, Wake, Wakeup};
use crate::server::sys::{self, Ctx, FirstArgs, OnBlocked, Text};

/// Blocks the client whose command runs until its request is settled. `false`:
/// the server does not let it wait.
pub fn block(to: &Replication<'_>, given: FirstArgs<'_>, waiter: WaiterId, keys: &[&[u8]]) -> bool {
    let Replication { shell, ctx, .. } = *to;
    let names: Option<Vec<Text>> = keys.iter().map(|key| given.text(key)).collect();
    let handle = names.and_then(|names| sys::block::<Waits>(ctx, &names, waiter));
    let Some(handle) = handle else {
        return false;
    };
    shell.clients.add(waiter, ctx.client(), handle);
    true
}

/// Gives a waiter its reply.
pub fn settle(shell: &ServerShell, ctx: Ctx<'_>, waiter: WaiterId, outcome: Outcome) {
    let granted = matches!(outcome, Outcome::Granted(_));
    if granted {
        // It can be lost until the reply is out.
        shell.subscriptions.subscribe_closes(ctx);
    }
    let at_once = shell.server.wakeup == Wakeup::AtOnce;
    match shell.clients.settle(waiter, outcome, at_once) {
        Wake::Now(client) => client.wake(),
        Wake::TooLate if granted => lost(shell, ctx, waiter),
        Wake::TooLate => {}
        // At the end of this turn, or of the next one.
        Wake::Later if shell.server.wakeup == Wakeup::BeforeSleep => shell.alarm.keep_awake(),
        Wake::Later => shell.alarm.arm_now(ctx),
    }
}

/// Wakes those whose waking was left to the end of the loop's turn.
pub fn deliver(shell: &ServerShell) {
    for client in shell.clients.to_wake() {
        client.wake();
    }
}

/// The loop's turn is over: the replies written in it are out.
pub fn turn_over(shell: &ServerShell) {
    let answered = shell.clients.take_answered();
    shell.core.change(|core| {
        for waiter in answered {
            core.confirm(waiter);
        }
    });
}

/// A connection closes. If a grant was answered to it in this turn of the loop,
/// the reply never left.
pub fn client_closed(shell: &ServerShell, ctx: Ctx<'_>, client: ClientId) {
    for waiter in shell.clients.closed(client) {
        lost(shell, ctx, waiter);
    }
}

/// The reply to a grant will never reach its client.
pub fn lost(shell: &ServerShell, ctx: Ctx<'_>, waiter: WaiterId) {
    shell.inbox.push(Note::Lost(waiter));
    shell.alarm.arm_now(ctx);
}

/// The server has ended a wait, perhaps because the connection has closed.
fn ended(shell: &ServerShell, ctx: Ctx<'_>, waiter: WaiterId, how: WaitEnd, closed: bool) {
    match how {
        WaitEnd::InQueue => {
            let due = shell.core.change(|core| match closed {
                true => lock::disconnected(core, waiter),
                false => {
                    lock::leave(core, waiter);
                    core.has_due()
                }
            });
            // Whoever that lets in is looked for by the timer.
            if due.unwrap_or(false) {
                shell.alarm.arm_now(ctx);
            }
        }
        WaitEnd::Granted => lost(shell, ctx, waiter),
        WaitEnd::Other => {}
    }
}

/// Where the server calls us about blocked clients.
struct Waits;

impl OnBlocked for Waits {
    /// Writes the reply: ours if the request is settled, or null if the server ends
    /// the wait (CLIENT UNBLOCK … TIMEOUT).
    fn reply(ctx: Ctx<'_>, waiter: WaiterId) {
        let reply = |shell: &ServerShell| {
            let in_own_buffer = shell.server.wakeup != Wakeup::AtOnce;
            match shell.clients.reply(waiter, in_own_buffer) {
                Ok(outcome) => Responder::of(&outcome).send(ctx),
                Err(how) => {
                    ended(shell, ctx, waiter, how, false);
                    Responder::Null.send(ctx);
                }
            }
        };
        SHELL.with(ctx, reply);
    }

    fn disconnected(ctx: Ctx<'_>, waiter: WaiterId) {
        SHELL.with(ctx, |shell| {
            let how = shell.clients.disconnected(waiter);
            ended(shell, ctx, waiter, how, true);
        });
    }

    fn freed(ctx: Ctx<'_>, waiter: WaiterId, gone: bool) {
        SHELL.with(ctx, |shell| {
            let how = shell.clients.freed(waiter, gone);
            ended(shell, ctx, waiter, how, true);
        });
    }
}
