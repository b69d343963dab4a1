//! What the server is asked to tell us, by what there is to watch for: nothing
//! while nobody waits and no hold belongs to a connection, for each kind of event
//! costs something each time.

use super::server_events::Events;
use super::{advice, key_events};
use crate::lock::{Core, ROUND_MS};
use crate::server::run::schedule::{self, IDLE_MS};
use crate::server::shell::Shell;
use crate::server::state::clock;
use crate::server::sys::{subscribe, unsubscribe, Ctx, ServerEvent};

/// Subscribes to what the locks there are need now. What is not needed any more is
/// let go by [`relax`], a while later.
pub fn update(shell: &Shell, ctx: Ctx<'_>) {
    hear_turns(shell, ctx);
    shell.subscriptions.hear_closes(ctx);
    if shell.locks.ask(Core::is_watching).unwrap_or(false) {
        // Keys that are overwritten (SET over a lock), which is no event of the classes
        // that `key_events` listens to.
        let overwrites = &shell.subscriptions.overwrites;
        if !overwrites.get() {
            overwrites.set(subscribe::<Events>(ctx, ServerEvent::Key));
        }
        // This server (Redis 7.0) cannot tell.
        if !overwrites.get() {
            shell.alarm.arm(ctx, clock::now(), ROUND_MS);
        }
        if shell.locks.ask(Core::is_renewing).unwrap_or(false) {
            advice::watchdog_in_use(shell, ctx);
        }
    }
}

/// Subscribes to turns of the event loop, which is all that BLOCK needs until it is granted.
pub fn hear_turns(shell: &Shell, ctx: Ctx<'_>) {
    if !shell.subscriptions.turns.replace(true) {
        subscribe::<Events>(ctx, ServerEvent::EventLoop);
        shell.alarm.arm(ctx, clock::now(), IDLE_MS);
    }
}

/// Subscribes to connections that close. For [`Subscriptions`].
///
/// [`Subscriptions`]: crate::server::state::Subscriptions
pub fn hear_closes(ctx: Ctx<'_>) {
    subscribe::<Events>(ctx, ServerEvent::Client);
}

/// After a command: the timer is armed for what comes next, and if a waiter with WATCHDOG
/// was granted, that is watched.
pub fn after_command(shell: &Shell, ctx: Ctx<'_>) {
    key_events::watch(shell, ctx);
    let watching = schedule::arm_after_command(shell, ctx);
    let on = &shell.subscriptions;
    if watching && !on.hear_holds() {
        update(shell, ctx);
    }
}

/// After a turn of the timer: lets go of what is not needed any more, and subscribes
/// to what a grant has made necessary.
pub fn relax(shell: &Shell, ctx: Ctx<'_>) {
    key_events::watch(shell, ctx);
    let known = shell
        .locks
        .ask(|core| (core.is_watching(), core.waiting() > 0, core.fears_closes()));
    let Some((watching, waiting, fears)) = known else {
        return;
    };
    let on = &shell.subscriptions;
    if watching {
        if !on.hear_holds() {
            update(shell, ctx);
        }
        return;
    }
    if !fears && shell.outbox.is_empty() && on.closes.replace(false) {
        unsubscribe(ctx, ServerEvent::Client);
    }
    if on.overwrites.replace(false) {
        unsubscribe(ctx, ServerEvent::Key);
    }
    let quiet = shell.clients.none_waits() && shell.outbox.is_empty();
    if !waiting && quiet && on.turns.replace(false) {
        unsubscribe(ctx, ServerEvent::EventLoop);
        shell.alarm.awake.set(false);
    }
    key_events::relax(shell, ctx);
}
