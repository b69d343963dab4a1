//! Warns in the log of settings of the server that do not go with locks: at load, at
//! the first use of WATCHDOG, and whenever they are changed.

use std::ffi::{c_void, CStr};

use redis_module::{raw, Context, RedisValue};

use super::events::server_event;
use super::ffi::{guarded, Ctx};
use super::records;
use super::shell::{shell, Shell};

/// A peer that is gone without a word is noticed after three to four of these.
const LONGEST_KEEPALIVE_S: i64 = 30;

/// At load: looks around, and goes on looking (Redis 7.0 and newer tell).
pub fn watch(ctx: Ctx) {
    check_eviction(ctx);
    server_event(ctx, raw::REDISMODULE_EVENT_CONFIG, Some(on_config));
}

/// For whoever grants or renews with WATCHDOG. Warns once per load.
pub fn watchdog_in_use(shell: &Shell, ctx: Ctx) {
    if !shell.watchdog_used.replace(true) {
        check_timeout(ctx);
        check_keepalive(ctx);
    }
}

fn check_timeout(ctx: Ctx) {
    if let Some(s) = number(ctx, TIMEOUT).filter(|s| *s > 0) {
        ctx.warn(&format!(
            "rlock: timeout is {s}: the server closes a connection that is silent for {s} s, and \
             its WATCHDOG locks are released; set timeout to 0"
        ));
    }
}

fn check_keepalive(ctx: Ctx) {
    match number(ctx, KEEPALIVE) {
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

fn check_eviction(ctx: Ctx) {
    let bounded = number(ctx, MAXMEMORY).is_some_and(|bytes| bytes > 0);
    let policy = setting(ctx, POLICY).filter(|_| bounded);
    if let Some(policy) = policy.filter(|policy| policy != "noeviction") {
        ctx.warn(&format!(
            "rlock: maxmemory-policy is {policy}: the server may evict locks that are held when \
             memory is full; set maxmemory-policy to noeviction"
        ));
    }
}

const TIMEOUT: &str = "timeout";
const KEEPALIVE: &str = "tcp-keepalive";
const MAXMEMORY: &str = "maxmemory";
const POLICY: &str = "maxmemory-policy";

/// A setting of the server that is a number.
pub fn number(ctx: Ctx, name: &str) -> Option<i64> {
    setting(ctx, name)?.parse().ok()
}

/// A setting of the server; `None` where CONFIG is renamed or refused.
fn setting(ctx: Ctx, name: &str) -> Option<String> {
    let pair = Context::new(ctx.0).call("CONFIG", &["GET", name]).ok()?;
    match pair {
        RedisValue::Array(pair) => pair.into_iter().nth(1)?.try_into().ok(),
        _ => None,
    }
}

unsafe extern "C" fn on_config(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _part: u64,
    data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a change of settings", (), || {
        // SAFETY: the server passes this structure with this event.
        let change = unsafe { data.cast::<raw::RedisModuleConfigChangeV1>().as_ref() };
        let Some(shell) = shell() else {
            return;
        };
        // The AOF may be on now.
        records::doubt(shell);
        let Some(change) = change else {
            return;
        };
        let len = usize::try_from(change.num_changes).unwrap_or(0);
        if change.config_names.is_null() {
            return;
        }
        // SAFETY: so many names stand there until the callback returns.
        let names = unsafe { std::slice::from_raw_parts(change.config_names, len) };
        let changed = |setting: &str| {
            names.iter().any(|name| {
                // SAFETY: as above; each is a C string.
                !name.is_null() && unsafe { CStr::from_ptr(*name) }.to_bytes() == setting.as_bytes()
            })
        };
        if changed(MAXMEMORY) || changed(POLICY) {
            check_eviction(ctx);
        }
        if shell.watchdog_used.get() {
            if changed(TIMEOUT) {
                check_timeout(ctx);
            }
            if changed(KEEPALIVE) {
                check_keepalive(ctx);
            }
        }
    });
}
