//! Commands as the server calls them.

use std::ffi::{c_int, CStr, CString};
use std::ops::RangeInclusive;

use redis_module::raw;

use super::api::{api, OK};
use super::ctx::Ctx;
use super::guard::callback;
use super::text::Args;

/// A command, as the server calls it.
pub trait Handler {
    /// What it is called in the log, should it fail.
    const WHAT: &'static str;

    /// Carries it out and replies. The arguments come after the command's name.
    fn run(ctx: Ctx<'_>, args: Args<'_>);
    /// Replies in place of `run`, which has failed.
    fn failed(ctx: Ctx<'_>);
    /// Where the keys are in a call that is not carried out, counted from the name of the
    /// command as 0.
    fn keys(args: Args<'_>) -> Option<RangeInclusive<usize>>;
}

/// What a command does with its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Read,
    Write,
}

/// Where the keys of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    None,
    /// The first argument is a key.
    One(Use),
    /// The first argument is a number of keys, and they follow.
    Counted(Use),
}

/// What the server is told of a command.
pub struct Spec {
    pub name: &'static CStr,
    /// The server's command flags, by name.
    pub flags: &'static str,
    /// ACL categories, where the server takes them from a module.
    pub acl: &'static CStr,
    pub keys: Keys,
    /// What it does, in a few words, for COMMAND DOCS.
    pub summary: &'static CStr,
    /// How it is called, for the error on a wrong number of arguments.
    pub usage: &'static str,
}

/// Registers a command. `false`: the server refused it.
pub fn register<H: Handler>(ctx: Ctx<'_>, spec: &Spec) -> bool {
    // Redis 7.0 asks a command itself for keys that are counted when it routes in a
    // cluster. Others learn of them by `command_info`.
    let (key, more) = match spec.keys {
        Keys::None => (0, ""),
        Keys::One(_) => (1, ""),
        Keys::Counted(_) => (0, " getkeys-api"),
    };
    let flags = CString::new(format!("{}{more}", spec.flags));
    let (Ok(flags), Some(create)) = (flags, api!(RedisModule_CreateCommand)) else {
        return false;
    };
    // SAFETY: the context is valid; the server copies name and flags.
    let status = unsafe {
        create(
            ctx.as_ptr(),
            spec.name.as_ptr(),
            Some(entry::<H>),
            flags.as_ptr(),
            key,
            key,
            key,
        )
    };
    let Some(command) = find(ctx, spec.name).filter(|_| status == OK) else {
        return false;
    };
    if let Some(call) = api!(RedisModule_SetCommandACLCategories) {
        // SAFETY: the command is registered; the server reads the C string and no more.
        unsafe { call(command, spec.acl.as_ptr()) };
    }
    true
}

/// A command that is registered.
pub(super) fn find(ctx: Ctx<'_>, name: &CStr) -> Option<*mut raw::RedisModuleCommand> {
    let call = api!(RedisModule_GetCommand)?;
    // SAFETY: the context is valid, the name is a C string.
    Some(unsafe { call(ctx.as_ptr(), name.as_ptr()) }).filter(|command| !command.is_null())
}

/// # Safety
/// For the server: `argv` is `argc` strings, the first the command's name.
unsafe extern "C" fn entry<H: Handler>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: as the caller says; they stay until the command returns.
    let args = unsafe { Args::new(argv, argc) };
    let is_asked_for_keys = |ctx: Ctx<'_>| ctx.context().is_keys_position_request();
    let run = |ctx: Ctx<'_>| {
        if is_asked_for_keys(ctx) {
            tell_keys(ctx, args, H::keys(args));
        } else {
            H::run(ctx, args.without_name());
        }
    };
    // SAFETY: the server passes it to this callback.
    let done = unsafe { callback(ctx, H::WHAT, run) };
    if done.is_none() {
        let failed = |ctx: Ctx<'_>| (!is_asked_for_keys(ctx)).then(|| H::failed(ctx));
        // SAFETY: as above.
        unsafe { callback(ctx, H::WHAT, failed) };
    }
    OK
}

/// Tells where the keys are, if all of them are there: the server looks where it is told.
fn tell_keys(ctx: Ctx<'_>, args: Args<'_>, keys: Option<RangeInclusive<usize>>) {
    let there = keys.filter(|keys| *keys.end() < args.len());
    for at in there.into_iter().flatten() {
        if let Ok(at) = c_int::try_from(at) {
            ctx.context().key_at_pos(at);
        }
    }
}
