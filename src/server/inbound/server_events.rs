//! Events of the server itself: databases that were emptied or exchanged,
//! loads, roles, replicas, clients that closed. These functions only record; the timer
//! or a command acts, through the gate.
//!
//! Some of these events are subscribed to only for a while (`watching`), for they cost
//! something each time.

use super::tick::leave;
use super::{advice, key_events, other_modules, recovery};
use crate::lock::{self, Cause, ClientId, Core, Note};
use crate::server::outbound::{answers, messages, reach, records};
use crate::server::run::{gate, schedule};
use crate::server::shell::{ServerShell, SHELL};
use crate::server::state::Wakeup;
use crate::server::sys::{self, Ctx, EventData, MachineUs, OnServerEvent, ServerEvent};

/// What is rare.
const ALWAYS: [ServerEvent; 9] = [
    ServerEvent::Flush,
    ServerEvent::SwapDb,
    ServerEvent::Loading,
    ServerEvent::Replica,
    ServerEvent::Fork,
    ServerEvent::Save,
    ServerEvent::Module,
    ServerEvent::Role,
    ServerEvent::Cron,
];

/// At load: subscribes to what is rare. `false`: the server refused.
pub fn subscribe(ctx: Ctx<'_>) -> bool {
    let mut events = ALWAYS.into_iter();
    events.all(|event| sys::subscribe::<Events>(ctx, event))
}

/// At load: looks at modules and settings, and goes on looking.
pub fn look_around(shell: &ServerShell, ctx: Ctx<'_>) {
    other_modules::look(shell, ctx);
    advice::check_eviction(shell, ctx);
    sys::subscribe::<Events>(ctx, ServerEvent::Config);
}

/// Where all of these events come in.
pub(super) struct Events;

impl OnServerEvent for Events {
    fn on_event(ctx: Ctx<'_>, event: EventData<'_>) {
        SHELL.with(ctx, |shell| observe(shell, ctx, event));
    }
}

fn observe(shell: &ServerShell, ctx: Ctx<'_>, event: EventData<'_>) {
    let situation = &shell.situation;
    let is_frequent = matches!(
        event,
        EventData::Cron { .. }
            | EventData::Closed(_)
            | EventData::EventLoop { .. }
            | EventData::Overwritten(_)
    );
    if !is_frequent {
        // Somebody may keep a record of writes by now.
        situation.records.set(None);
    }
    match event {
        EventData::Flushed { db } => replaced(shell, ctx, Note::Replaced(db, Cause::Flushed)),
        EventData::Swapped(one, other) => {
            shell.recovery.swapped(one, other);
            replaced(shell, ctx, Note::Swapped(one, other));
        }
        EventData::Loading { over } => {
            situation.loading.set(!over);
            shell.recovery.end();
            if over {
                recovery::begin_now(shell, ctx);
                // The flush before the load is part of it.
                shell.inbox.forget_flushes();
                // A lock that is there again is the same one: DEBUG RELOAD, a load that
                // failed.
                replaced(shell, ctx, Note::Replaced(None, Cause::Unknown));
            }
        }
        EventData::Role { master } => {
            situation.master.set(master);
            if master {
                recovery::begin_now(shell, ctx);
                // What happened to keys meanwhile was not noted.
                replaced(shell, ctx, Note::Replaced(None, Cause::Unknown));
            } else {
                demoted(shell, ctx);
            }
        }
        EventData::Replicas => replicas(shell, ctx),
        // SAVE needs no child, and its file says where in the backlog it was made: a
        // replica that begins with it asks for what comes after.
        EventData::Saved => {}
        // One that goes is shown still.
        EventData::Modules => {
            other_modules::look(shell, ctx);
            key_events::watch(shell, ctx);
        }
        EventData::Cron { hz } => beat(shell, ctx, hz),
        EventData::Closed(client) => closed(shell, ctx, client),
        EventData::EventLoop { slept } => {
            shell.alarm.awake.set(slept);
            match shell.server.wakeup {
                _ if slept => answers::turn_over(shell),
                Wakeup::BeforeSleep => {
                    messages::deliver(shell, ctx);
                    answers::deliver(shell);
                }
                Wakeup::ByTimer | Wakeup::AtOnce => {}
            }
        }
        EventData::Settings(names) => changed(shell, ctx, &names),
        EventData::Overwritten(name) => key_events::overwritten(shell, ctx, name),
    }
}

/// A replica came or went, or a child was forked. It may be to bring a replica up: that serves
/// subscribers for a while before the server calls it online.
fn replicas(shell: &ServerShell, ctx: Ctx<'_>) {
    shell.situation.replicas.set(true);
    if records::has_replicas(ctx) {
        shell.pulse.can_be_replaced();
    }
}

/// The server's cron has run.
fn beat(shell: &ServerShell, ctx: Ctx<'_>, hz: i32) {
    let now = MachineUs::now();
    shell.pulse.beat(now, hz);
    shell.listeners.forget();
    let listens = || reach::anybody_waits(ctx, shell.server.cluster);
    if shell.unpublished.beat(now, listens) {
        shell.alarm.arm_now(ctx);
    }
    let look = || gate::bar(&shell.pulse, ctx, now);
    shell.permission.beat(now, look);
    schedule::mend(shell, ctx);
}

/// Settings were changed.
fn changed(shell: &ServerShell, ctx: Ctx<'_>, names: &[&[u8]]) {
    advice::changed(shell, ctx, names);
    if names.contains(&&b"rlock.recovery-scan"[..]) {
        recovery::set(shell, ctx);
    }
    // Events of ours may have listeners by now.
    key_events::watch(shell, ctx);
}

/// Whole databases changed. Nothing to do if nothing is known.
fn replaced(shell: &ServerShell, ctx: Ctx<'_>, note: Note) {
    let idle = shell.core.ask(Core::is_idle).unwrap_or(true);
    if !idle {
        leave(shell, ctx, [note]);
    }
}

/// This server is a replica from now on.
fn demoted(shell: &ServerShell, ctx: Ctx<'_>) {
    shell.pulse.can_be_replaced();
    shell.recovery.end();
    shell.unpublished.forget();
    shell.core.change(lock::demoted);
    shell.inbox.take();
    shell.alarm.arm_now(ctx);
}

fn closed(shell: &ServerShell, ctx: Ctx<'_>, client: ClientId) {
    answers::client_closed(shell, ctx, client);
    let bound = shell.core.ask(|core| core.is_bound_beside_block(client));
    if bound.unwrap_or(true) {
        leave(shell, ctx, [Note::Closed(client)]);
    }
}
