//! The events of the server that we subscribe to, by what there is to watch for. While
//! nobody waits and no hold belongs to a connection there are none, for each kind of event
//! costs something each time.

use super::server_events::Events;
use super::{advice, key_events};
use crate::lock::{Core, ROUND_MS};
use crate::server::run::schedule::{self, IDLE_MS};
use crate::server::shell::ServerShell;
use crate::server::state::clock;
use crate::server::sys::{subscribe, unsubscribe, Ctx, ServerEvent};

/// Subscribes to what the locks there are need now. What is not needed any more is
/// let go by [`relax`], a while later.
pub fn update(shell: &ServerShell, ctx: Ctx<'_>) {
    subscribe_turns(shell, ctx);
    shell.subscriptions.subscribe_closes(ctx);
    if shell.core.ask(Core::is_watching).unwrap_or(false) {
        // Keys that are overwritten (SET over a lock), which is no event of the classes
        // that `key_events` listens to.
        let overwrites = &shell.subscriptions.overwrites;
        if !overwrites.get() {
            overwrites.set(subscribe::<Events>(ctx, ServerEvent::Key));
        }
        // This server (Redis 7.0) has no such event.
        if !overwrites.get() {
            shell.alarm.arm(ctx, clock::now(), ROUND_MS);
        }
        if shell.core.ask(Core::is_renewing).unwrap_or(false) {
            advice::watchdog_in_use(shell, ctx);
        }
    }
}

/// Subscribes to turns of the event loop, which is all that a blocked waiter needs until it
/// is granted.
pub fn subscribe_turns(shell: &ServerShell, ctx: Ctx<'_>) {
    if !shell.subscriptions.turns.replace(true) {
        subscribe::<Events>(ctx, ServerEvent::EventLoop);
        shell.alarm.arm(ctx, clock::now(), IDLE_MS);
    }
}

/// Subscribes to connections that close. For [`Subscriptions`].
///
/// [`Subscriptions`]: crate::server::state::Subscriptions
pub fn subscribe_closes(ctx: Ctx<'_>) {
    subscribe::<Events>(ctx, ServerEvent::Client);
}

/// After a command: the timer is armed for what comes next, and if a waiter with WATCHDOG
/// was granted, that is watched.
pub fn after_command(shell: &ServerShell, ctx: Ctx<'_>) {
    key_events::watch(shell, ctx);
    let watching = schedule::arm_after_command(shell, ctx);
    let on = &shell.subscriptions;
    if watching && !on.covers_holds() {
        update(shell, ctx);
    }
}

/// After a turn of the timer: lets go of what is not needed any more, and subscribes
/// to what a grant has made necessary.
pub fn relax(shell: &ServerShell, ctx: Ctx<'_>) {
    key_events::watch(shell, ctx);
    let known = shell.core.ask(|core| {
        (
            core.is_watching(),
            core.waiting() > 0,
            core.tracks_disconnects(),
        )
    });
    let Some((watching, waiting, disconnects)) = known else {
        return;
    };
    let on = &shell.subscriptions;
    if watching {
        if !on.covers_holds() {
            update(shell, ctx);
        }
        return;
    }
    if !disconnects && shell.outbox.is_empty() && on.closes.replace(false) {
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
