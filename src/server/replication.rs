//! Effects for replicas and the AOF: plain commands with absolute times, so that
//! nobody decides anything anew and a server without the module understands them.

use std::ffi::{c_int, c_longlong, CStr};

use redis_module::raw;

use super::ffi::{api, Ctx, Selected, Text};
use super::{records, slots};

/// The commands that effects are replicated as, and the one that the gate asks
/// by. A server on which one of them was renamed away would lose effects, or grant
/// where it must not, silently; so rlock does not load there.
pub const COMMANDS: [&CStr; 8] = [
    c"HSET",
    c"HINCRBY",
    c"HDEL",
    c"SET",
    c"PEXPIREAT",
    c"DEL",
    c"PUBLISH",
    c"SETRANGE",
];

/// Calls the variadic RM_Replicate. `None`: the server did not take it.
macro_rules! replicate {
    ($ctx:expr, $db:expr, $command:expr, $format:expr, $($arg:expr),+) => {{
        if !records::are_kept($ctx) {
            return records::count_a_write($ctx);
        }
        let _db = Selected::new($ctx, $db);
        // SAFETY: set at load.
        let function = unsafe { raw::RedisModule_Replicate }?;
        // SAFETY: the arguments are of the kinds that the format names.
        let status = unsafe { function($ctx.0, $command.as_ptr(), $format.as_ptr(), $($arg),+) };
        (status == raw::REDISMODULE_OK as c_int).then_some(())
    }};
}

pub fn hset(ctx: Ctx, db: i32, name: &Text, field: &Text, value: &Text) -> Option<()> {
    let (name, field, value) = (name.as_ptr(), field.as_ptr(), value.as_ptr());
    replicate!(ctx, db, c"HSET", c"sss", name, field, value)
}

pub fn hincrby(ctx: Ctx, db: i32, name: &Text, field: &Text, by: i64) -> Option<()> {
    let by: c_longlong = by;
    replicate!(
        ctx,
        db,
        c"HINCRBY",
        c"ssl",
        name.as_ptr(),
        field.as_ptr(),
        by
    )
}

pub fn hdel(ctx: Ctx, db: i32, name: &Text, field: &Text) -> Option<()> {
    let (name, field) = (name.as_ptr(), field.as_ptr());
    replicate!(ctx, db, c"HDEL", c"ss", name, field)
}

/// SET name value, with PXAT if it ends at some time.
pub fn set(ctx: Ctx, db: i32, name: &Text, value: &Text, at: Option<i64>) -> Option<()> {
    let (name, value) = (name.as_ptr(), value.as_ptr());
    let Some(at) = at else {
        return replicate!(ctx, db, c"SET", c"ss", name, value);
    };
    let at: c_longlong = at;
    let pxat = c"PXAT".as_ptr();
    replicate!(ctx, db, c"SET", c"sscl", name, value, pxat, at)
}

pub fn pexpireat(ctx: Ctx, db: i32, name: &Text, at: i64) -> Option<()> {
    let at: c_longlong = at;
    replicate!(ctx, db, c"PEXPIREAT", c"sl", name.as_ptr(), at)
}

pub fn del(ctx: Ctx, db: i32, name: &Text) -> Option<()> {
    replicate!(ctx, db, c"DEL", c"s", name.as_ptr())
}

/// To replicas only (`A`: not to the AOF), for their subscribers.
pub fn publish(ctx: Ctx, channel: &Text, message: &Text) -> Option<()> {
    let (channel, message) = (channel.as_ptr(), message.as_ptr());
    replicate!(ctx, ctx.db(), c"PUBLISH", c"Ass", channel, message)
}

/// Asks the replicas to acknowledge what they have, as WAIT does.
pub fn ask_for_ack(ctx: Ctx) -> Option<()> {
    let (getack, all) = (c"GETACK".as_ptr(), c"*".as_ptr());
    replicate!(ctx, ctx.db(), c"REPLCONF", c"Acc", getack, all)
}

/// The first of [`COMMANDS`] that this server does not know, in a cluster also of those
/// that it is asked for its slots by.
pub fn missing_command(ctx: Ctx) -> Option<&'static CStr> {
    let in_cluster = ctx.flags() & raw::REDISMODULE_CTX_FLAGS_CLUSTER as i32 != 0;
    let of_slots = slots::COMMANDS.into_iter().filter(|_| in_cluster);
    COMMANDS
        .into_iter()
        .chain(of_slots)
        .find(|command| is_missing(ctx, command))
}

/// Whether this server does not know a command.
pub fn is_missing(ctx: Ctx, command: &CStr) -> bool {
    // Without arguments it does not run; the server says ENOENT for a command that
    // it does not know, and EINVAL for the missing arguments.
    // SAFETY: set at load.
    let Some(call) = (unsafe { raw::RedisModule_Call }) else {
        return true;
    };
    errno::clear();
    // SAFETY: the format names no argument.
    let reply = unsafe { call(ctx.0, command.as_ptr(), c"E".as_ptr()) };
    if !reply.is_null() {
        api!(RedisModule_FreeCallReply(reply));
    }
    errno::get() == libc::ENOENT
}

/// The C library's error number, which RM_Call reports by.
pub mod errno {
    pub fn clear() {
        // SAFETY: the address is valid for this thread.
        unsafe { *libc::__errno_location() = 0 };
    }

    pub fn get() -> i32 {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() }
    }
}
