//! Commands that we call. They may change any key, so none is called while one is open.

use std::ffi::{c_int, CStr};
use std::marker::PhantomData;
use std::ptr::NonNull;

use redis_module::{raw, CallOptionsBuilder, CallResult, Context, RedisValue};

use super::api::api;
use super::ctx::Ctx;
use super::key::any_is_open;
use super::text::Text;

/// What came of a call.
pub struct Called<'a> {
    reply: Option<Reply<'a>>,
    /// The C library's error number, by which the server says why it refused.
    errno: i32,
}

/// How a command is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Plain,
    /// As for a script, with all checks that a client's write goes through.
    Script,
}

/// Calls a command. Ours, and not that of `redis-module`, because it tells the error
/// number. A refusal is always asked for as a reply: Valkey 9.1 crashes on one otherwise.
/// `None`: a key is open.
pub fn call<'a, const N: usize>(
    ctx: Ctx<'a>,
    command: &CStr,
    scope: Scope,
    args: [&Text<'_>; N],
) -> Option<Called<'a>> {
    if any_is_open() {
        return None;
    }
    let function = api!(RedisModule_Call)?;
    let format = match scope {
        Scope::Plain => c"Ev",
        Scope::Script => c"SEv",
    };
    let mut args = args.map(Text::as_ptr);
    errno::clear();
    // SAFETY: the context is valid; `v` takes the array of strings and its length.
    let reply = unsafe {
        function(
            ctx.as_ptr(),
            command.as_ptr(),
            format.as_ptr(),
            args.as_mut_ptr(),
            args.len(),
        )
    };
    let errno = errno::get();
    let reply = NonNull::new(reply).map(|reply| Reply {
        reply,
        ctx: PhantomData,
    });
    Some(Called { reply, errno })
}

impl Called<'_> {
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// The server gave no reply at all.
    pub fn has_no_reply(&self) -> bool {
        self.reply.is_none()
    }

    /// It was refused or failed.
    pub fn is_error(&self) -> bool {
        let kind = self.reply.as_ref().and_then(Reply::kind);
        self.has_no_reply() || kind == Some(raw::REDISMODULE_REPLY_ERROR as c_int)
    }

    /// The number at this place of an array.
    pub fn number_at(&self, at: usize) -> Option<i64> {
        self.reply.as_ref()?.number_at(at)
    }
}

/// Freed when it is dropped.
struct Reply<'a> {
    reply: NonNull<raw::RedisModuleCallReply>,
    ctx: PhantomData<Ctx<'a>>,
}

impl Reply<'_> {
    fn kind(&self) -> Option<c_int> {
        let call = api!(RedisModule_CallReplyType)?;
        // SAFETY: the reply is not freed yet.
        Some(unsafe { call(self.reply.as_ptr()) })
    }

    fn number_at(&self, at: usize) -> Option<i64> {
        let (element, number) = (
            api!(RedisModule_CallReplyArrayElement)?,
            api!(RedisModule_CallReplyInteger)?,
        );
        // SAFETY: the reply is not freed yet; one that is no array has no elements.
        let element = unsafe { element(self.reply.as_ptr(), at) };
        if element.is_null() {
            return None;
        }
        // SAFETY: the element belongs to the reply; one that is no number says so.
        Some(unsafe { number(element) })
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if let Some(call) = api!(RedisModule_FreeCallReply) {
            // SAFETY: it is ours, and not used after this.
            unsafe { call(self.reply.as_ptr()) };
        }
    }
}

/// Runs a command that only reads, for its reply as a value. `None`: it was refused, or
/// a key is open.
pub fn ask(ctx: Ctx<'_>, command: &str, args: &[&[u8]]) -> Option<RedisValue> {
    if any_is_open() {
        return None;
    }
    let options = CallOptionsBuilder::new().errors_as_replies().build();
    let context = Context::new(ctx.as_ptr().cast());
    let reply: CallResult<'_> = context.call_ext(command, &options, args);
    reply.ok().map(|reply| RedisValue::from(&reply))
}

/// A setting of the server; `None` where CONFIG is renamed or refused.
pub fn setting(ctx: Ctx<'_>, name: &str) -> Option<String> {
    match ask(ctx, "CONFIG", &[b"GET", name.as_bytes()])? {
        RedisValue::Array(pair) => pair.into_iter().nth(1)?.try_into().ok(),
        _ => None,
    }
}

/// One that is a number.
pub fn number_setting(ctx: Ctx<'_>, name: &str) -> Option<i64> {
    setting(ctx, name)?.parse().ok()
}

/// Whether this server does not know a command.
pub fn is_missing(ctx: Ctx<'_>, command: &CStr) -> bool {
    // Without arguments it does not run; the server says ENOENT for a command that it does
    // not know, and EINVAL for the missing arguments.
    call(ctx, command, Scope::Plain, []).is_none_or(|called| called.errno() == libc::ENOENT)
}

/// The C library's error number, which RM_Call reports by.
mod errno {
    pub fn clear() {
        // SAFETY: the address is valid for this thread.
        unsafe { *libc::__errno_location() = 0 };
    }

    pub fn get() -> i32 {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() }
    }
}
