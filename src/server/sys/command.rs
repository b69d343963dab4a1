//! Commands as the server calls them.

use std::ffi::{c_int, CStr, CString};
use std::io;

use redis_module::raw;

use super::api::{api, OK};
use super::ctx::Ctx;
use super::guard::callback;
use super::text::RawArgs;

/// A command, as the server calls it.
pub trait Handler {
    /// What it is called in the log, should it fail.
    const WHAT: &'static str;

    /// Carries it out and replies. The arguments come after the command's name.
    fn run(ctx: Ctx<'_>, args: RawArgs<'_>);
    /// Replies in place of `run`, which has failed.
    fn failed(ctx: Ctx<'_>);
}

/// What a command does with its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Read,
    Write,
}

/// Where the keys of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyArgs {
    None,
    /// The first argument is a key.
    One(Use),
    /// The first argument is a number of keys, and they follow.
    Counted(Use),
}

/// Where the first of keys that are counted is.
pub(super) const FIRST_COUNTED: c_int = 2;

/// A command, as we describe it to the server.
pub struct Spec {
    pub name: &'static CStr,
    /// The server's command flags, by name.
    pub flags: &'static str,
    /// Its categories of ACLs but for our own.
    pub acl: &'static str,
    pub keys: KeyArgs,
    /// What it does, in a few words, for COMMAND DOCS.
    pub summary: &'static CStr,
    /// Its cost, likewise.
    pub complexity: &'static CStr,
    /// How it is called, for the error on a wrong number of arguments.
    pub usage: &'static str,
}

/// Registers a command. `false`: the server refused it.
/// `acl`: its categories, where the server takes them from a module.
pub fn register<H: Handler>(ctx: Ctx<'_>, spec: &Spec, acl: String) -> bool {
    // A cluster routes by these. It could ask the command for all of its keys
    // (`getkeys-api`), but Redis 8 does that in several threads at once.
    let key = match spec.keys {
        KeyArgs::None => 0,
        KeyArgs::One(_) => 1,
        KeyArgs::Counted(_) => FIRST_COUNTED,
    };
    let (Ok(flags), Some(create)) = (CString::new(spec.flags), api!(RedisModule_CreateCommand))
    else {
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
    if let (Some(call), Ok(acl)) = (api!(RedisModule_SetCommandACLCategories), CString::new(acl)) {
        // SAFETY: the command is registered; the server reads the C string and no more.
        unsafe { call(command, acl.as_ptr()) };
    }
    true
}

/// Makes a category of ACLs, while the module is loaded. `false`: this server takes none from
/// modules, or has too many.
pub fn add_category(ctx: Ctx<'_>, name: &CStr) -> bool {
    api!(RedisModule_AddACLCategory).is_some_and(|call| {
        // SAFETY: the context is valid, the name is a C string.
        let status = unsafe { call(ctx.as_ptr(), name.as_ptr()) };
        // A server keeps it when the module is unloaded.
        status == OK || io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
    })
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
    let args = unsafe { RawArgs::new(argv, argc) };
    let run = |ctx: Ctx<'_>| H::run(ctx, args.without_name());
    // SAFETY: the server passes it to this callback.
    let done = unsafe { callback(ctx, H::WHAT, run) };
    if done.is_none() {
        // SAFETY: as above.
        unsafe { callback(ctx, H::WHAT, H::failed) };
    }
    OK
}
