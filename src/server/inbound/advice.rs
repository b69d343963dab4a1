//! Warns in the log of settings of the server that do not go with locks: at load, at
//! the first use of WATCHDOG, and whenever they are changed.

use crate::server::shell::ServerShell;
use crate::server::sys::{number_setting, setting, Ctx};

/// A peer that is gone without a word is noticed after three to four of these.
const LONGEST_KEEPALIVE_S: i64 = 30;

const TIMEOUT: &str = "timeout";
const KEEPALIVE: &str = "tcp-keepalive";
const MAXMEMORY: &str = "maxmemory";
const POLICY: &str = "maxmemory-policy";

/// For whoever grants or renews with WATCHDOG. Warns once per load.
pub fn watchdog_in_use(shell: &ServerShell, ctx: Ctx<'_>) {
    if !shell.subscriptions.watchdog_used.replace(true) {
        check_timeout(ctx);
        check_keepalive(ctx);
    }
}

/// Settings were changed.
pub fn changed(shell: &ServerShell, ctx: Ctx<'_>, names: &[&[u8]]) {
    let has = |name: &str| names.contains(&name.as_bytes());
    if has(MAXMEMORY) || has(POLICY) {
        check_eviction(shell, ctx);
    }
    if shell.subscriptions.watchdog_used.get() {
        if has(TIMEOUT) {
            check_timeout(ctx);
        }
        if has(KEEPALIVE) {
            check_keepalive(ctx);
        }
    }
}

fn check_timeout(ctx: Ctx<'_>) {
    if let Some(s) = number_setting(ctx, TIMEOUT).filter(|s| *s > 0) {
        ctx.warn(&format!(
            "rlock: timeout is {s}: the server closes a connection that is silent for {s} s, and \
             its WATCHDOG locks are released; set timeout to 0"
        ));
    }
}

fn check_keepalive(ctx: Ctx<'_>) {
    match number_setting(ctx, KEEPALIVE) {
        Some(0) => ctx.warn(
            "rlock: tcp-keepalive is 0: a WATCHDOG lock whose client lost its power or network is \
             never released; set tcp-keepalive to 10",
        ),
        Some(s) if s > LONGEST_KEEPALIVE_S => ctx.warn(&format!(
            "rlock: tcp-keepalive is {s}: a WATCHDOG lock whose client lost its power or network \
             is released only after up to {} s; set tcp-keepalive to 10",
            s.saturating_mul(4)
        )),
        _ => {}
    }
}

/// At load, and when it is changed.
pub fn check_eviction(shell: &ServerShell, ctx: Ctx<'_>) {
    let bounded = number_setting(ctx, MAXMEMORY).is_some_and(|bytes| bytes > 0);
    let policy = setting(ctx, POLICY).filter(|_| bounded);
    let policy = policy.filter(|policy| policy != "noeviction");
    shell.situation.evicts.set(policy.is_some());
    if let Some(policy) = policy {
        ctx.warn(&format!(
            "rlock: maxmemory-policy is {policy}: the server may evict locks that are held when \
             memory is full; set maxmemory-policy to noeviction"
        ));
    }
}
