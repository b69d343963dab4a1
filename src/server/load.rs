//! Loading and unloading.

use redis_module::{ContextFlags, RedisString, RedisValue};

use super::inbound;
use super::outbound::{records, replication};
use super::shell::{ServerShell, SHELL};
use super::state::{clock, ServerProfile};
use super::sys::{self, Ctx};
use crate::{config, version};

/// Checks the server, then sets up the module's state and subscriptions.
/// `commands` registers the commands; its second argument is whether the server has a category
/// of ACLs for them. `false`: the module cannot be loaded, and the log says why.
pub fn load(ctx: Ctx<'_>, args: &[RedisString], commands: fn(Ctx<'_>, bool) -> bool) -> bool {
    let texts: Vec<&[u8]> = args.iter().map(RedisString::as_slice).collect();
    if let Err(why) = fits(ctx, &texts) {
        ctx.warn(&format!("rlock: {why}"));
        return false;
    }
    ctx.with_context(|context| config::register(context, args));
    if !sys::take_settings(ctx) {
        ctx.warn("rlock: a setting is refused, see the line before");
        return false;
    }
    if sys::is_missing(ctx, c"PUBSUB") {
        ctx.warn(
            "rlock: PUBSUB is renamed or disabled: those who wait by subscription, as \
             Redisson does, get no yield window among native waiters, and QUEUE and NOTIFY find \
             nobody subscribed",
        );
    }
    let Some(server) = ServerProfile::detect(ctx) else {
        return false;
    };
    clock::start(server.ends_early);
    let shell = ServerShell::new(server, inbound::on_timer, inbound::subscribe_closes);
    let master = ctx.flags().contains(ContextFlags::MASTER);
    shell.situation.master.set(master);
    let replicas = records::has_replicas(ctx);
    shell.situation.replicas.set(replicas);
    // Any node of a cluster can come to have replicas, and a restart cuts off those it has.
    if replicas || !master || shell.server.cluster {
        shell.pulse.can_be_replaced();
    }
    if !SHELL.install(ctx, shell) {
        return false;
    }
    let is_set_up = SHELL.with(ctx, |shell| set_up(shell, ctx, commands)) == Some(true);
    if !is_set_up {
        ctx.warn("rlock: the server refused a command or an event");
    }
    is_set_up
}

/// Whether arguments and server are as they need to be; if not, what is wrong.
fn fits(ctx: Ctx<'_>, args: &[&[u8]]) -> Result<(), String> {
    config::check(args)?;
    if let Some(name) = sys::missing_function() {
        return Err(format!(
            "this server lacks {name}; rlock needs Redis 7.0 or Valkey 8.0, or newer"
        ));
    }
    match replication::missing_command(ctx, ctx.flags().contains(ContextFlags::CLUSTER)) {
        None => Ok(()),
        Some(command) => Err(format!(
            "the command {command:?}, which rlock relies on, is renamed or disabled; \
             restore it, or restrict it by ACL instead"
        )),
    }
}

/// `false`: the server refused something.
fn set_up(shell: &ServerShell, ctx: Ctx<'_>, commands: fn(Ctx<'_>, bool) -> bool) -> bool {
    if !commands(ctx, sys::add_category(ctx, c"rlock")) || !inbound::subscribe(ctx) {
        return false;
    }
    let valkey = shell.server.valkey;
    sys::set_options(ctx, valkey);
    sys::show_info::<inbound::InfoSection>(ctx);
    inbound::look_around(shell, ctx);
    inbound::begin_recovery_scan(shell, ctx);
    ctx.notice(&format!(
        "rlock {} (build {}) on {}: ready; owner * is {}:<client id>",
        version::TEXT,
        version::BUILD,
        if valkey { "Valkey" } else { "Redis" },
        shell.server.uuid
    ));
    true
}

/// The server asks only when no client waits and no timer is armed, that is when
/// no lease runs. `false`: not now, and the log says why.
pub fn unload(ctx: Ctx<'_>) -> bool {
    let why = SHELL
        .with(ctx, |shell| forbids_unload(shell, ctx))
        .flatten();
    let why = why.or_else(|| (!SHELL.remove(ctx)).then_some("it is at work"));
    if let Some(why) = why {
        ctx.warn(&format!("rlock: not unloaded: {why}"));
        return false;
    }
    true
}

/// Why the module cannot be unloaded now, if it cannot. A library that is gone when the
/// server calls it takes the server with it, and the server itself looks at blocked
/// clients and timers only.
fn forbids_unload(shell: &ServerShell, ctx: Ctx<'_>) -> Option<&'static str> {
    if ctx.flags().contains(ContextFlags::MULTI) {
        return Some("commands may follow in this transaction");
    }
    // This call itself is one.
    if sys::under_way() > 1 {
        return Some("it is at work");
    }
    let waits = (!shell.clients.none_waits()).then_some("a client waits");
    let named = || {
        let why = "rules of a user name its commands, and servers crash that look for them then: \
                   take them away first (ACL SETUSER name nocommands ...)";
        let unknown = "ACL LIST is not to be had, and servers crash if rules of a user name its \
                       commands then";
        match is_named_in_rules(ctx) {
            Some(named) => named.then_some(why),
            None => Some(unknown),
        }
    };
    shell.alarm.awaits().or(waits).or_else(named)
}

/// Whether the rules of some user name a command of ours, as `+rlock.acquire` does. Redis 7.2
/// and newer and Valkey 8.0 look each such command up when a module is gone, and crash. `None`: the
/// server does not say.
fn is_named_in_rules(ctx: Ctx<'_>) -> Option<bool> {
    let Some(RedisValue::Array(users)) = sys::ask(ctx, "ACL", &[b"LIST"]) else {
        return None;
    };
    let names = |rules: &[u8]| {
        let mut rules = rules.split(|byte| matches!(byte, b' ' | b'(' | b')'));
        rules.any(|rule| rule.starts_with(b"+rlock.") || rule.starts_with(b"-rlock."))
    };
    Some(users.iter().filter_map(sys::bytes).any(names))
}
