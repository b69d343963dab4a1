//! Commands that we call. They may change any key, so none is called while one is open.

use std::ffi::{c_int, CStr};
use std::io;
use std::ptr::NonNull;

use redis_module::{raw, CallOptionsBuilder, CallResult, RedisValue};

use super::api::api;
use super::ctx::Ctx;
use super::key::{any_is_open, HashFields};
use super::text::Text;
use super::version::version;

/// What came of a call, but for its reply.
pub struct Called {
    /// The server gave a reply.
    pub replied: bool,
    /// It was refused or failed: the code that the error begins with.
    pub error: Option<String>,
    /// The C library's error number, by which the server says why it refused.
    pub errno: i32,
}

/// How a command is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Plain,
    /// As for a script, with all checks that a client's write goes through; where the server
    /// can do so (from 7.2 on) it checks and does not run.
    Checked,
    /// As by the user whose command runs.
    User,
}

/// What a command replied. It is freed with this.
struct CallReply(NonNull<raw::RedisModuleCallReply>);

impl CallReply {
    /// The code of an error.
    fn error(&self) -> Option<String> {
        let kind = api!(RedisModule_CallReplyType)?;
        // SAFETY: the reply is not freed yet.
        if unsafe { kind(self.0.as_ptr()) } != raw::REDISMODULE_REPLY_ERROR as c_int {
            return None;
        }
        let mut length = 0;
        let text = api!(RedisModule_CallReplyStringPtr).map(|call| {
            // SAFETY: as above; it writes the text's length.
            unsafe { call(self.0.as_ptr(), &raw mut length) }
        });
        let text = text.filter(|text| !text.is_null()).map(|text| {
            // SAFETY: a text of this length, that lives as long as the reply.
            unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }
        });
        let code = text.and_then(|text| text.split(|byte| matches!(byte, b' ' | b'\r')).next());
        let code = String::from_utf8_lossy(code.unwrap_or_default());
        Some(code.trim_start_matches('-').to_owned())
    }
}

impl Drop for CallReply {
    fn drop(&mut self) {
        if let Some(free) = api!(RedisModule_FreeCallReply) {
            // SAFETY: it is ours, and not used after this.
            unsafe { free(self.0.as_ptr()) };
        }
    }
}

/// Runs a command, and gives its reply and the C library's error number. Ours, and not that
/// of `redis-module`, because it gives that number, and takes half the instructions.
/// A refusal is always asked for as a reply: Valkey 9.1 crashes on one otherwise.
/// `None`: a key is open, or the server has no memory for the arguments.
fn run(
    ctx: Ctx<'_>,
    command: &CStr,
    scope: Scope,
    args: &[&[u8]],
) -> Option<(Option<CallReply>, i32)> {
    if any_is_open() {
        return None;
    }
    let function = api!(RedisModule_Call)?;
    let format = match scope {
        Scope::Plain => c"Ev",
        Scope::Checked if version() >= 0x0007_0200 => c"SEDv",
        Scope::Checked => c"SEv",
        Scope::User => c"CEv",
    };
    let args: Option<Vec<Text<'_>>> = args.iter().map(|arg| Text::new(arg)).collect();
    let args = args?;
    let mut args: Vec<_> = args.iter().map(Text::as_ptr).collect();
    // By this number the server says why it refuses.
    // SAFETY: the address is valid for this thread.
    unsafe { *libc::__errno_location() = 0 };
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
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Some((NonNull::new(reply).map(CallReply), errno))
}

/// Calls a command. `None`: it could not be.
pub fn call(ctx: Ctx<'_>, command: &CStr, scope: Scope, args: &[&[u8]]) -> Option<Called> {
    let (reply, errno) = run(ctx, command, scope, args)?;
    Some(Called {
        replied: reply.is_some(),
        error: reply.and_then(|reply| reply.error()),
        errno,
    })
}

/// The number that stands at a place of the list which a command replies.
pub fn number_at(ctx: Ctx<'_>, command: &CStr, args: &[&[u8]], at: usize) -> Option<i64> {
    let (reply, _) = run(ctx, command, Scope::Plain, args)?;
    let reply = reply?;
    let element = api!(RedisModule_CallReplyArrayElement)?;
    let kind = api!(RedisModule_CallReplyType)?;
    let number = api!(RedisModule_CallReplyInteger)?;
    // SAFETY: the reply is not freed yet; there is no element of one that is no list, or
    // is too short.
    let element = NonNull::new(unsafe { element(reply.0.as_ptr(), at) })?;
    // SAFETY: it is a part of the reply.
    let is_one = unsafe { kind(element.as_ptr()) } == raw::REDISMODULE_REPLY_INTEGER as c_int;
    // SAFETY: as above, and it is a number.
    is_one.then(|| unsafe { number(element.as_ptr()) })
}

/// Runs a command that only reads, for its reply as a value. `None`: it was refused, or
/// a key is open.
pub fn ask(ctx: Ctx<'_>, command: &str, args: &[&[u8]]) -> Option<RedisValue> {
    if any_is_open() {
        return None;
    }
    let options = CallOptionsBuilder::new().errors_as_replies().build();
    let reply: CallResult<'_> = ctx.context().call_ext(command, &options, args);
    reply.ok().map(|reply| RedisValue::from(&reply))
}

/// So many fields of a hash are asked for in one go.
const SCAN: &[u8] = b"100";

/// Some fields of a hash, and the cursor of the next ones, if there are more (HSCAN).
/// `None`: it was refused, or a key is open.
pub fn hash_scan(ctx: Ctx<'_>, name: &[u8], cursor: u64) -> Option<(HashFields, Option<u64>)> {
    let cursor = cursor.to_string();
    let reply = ask(ctx, "HSCAN", &[name, cursor.as_bytes(), b"COUNT", SCAN])?;
    let RedisValue::Array(reply) = reply else {
        return None;
    };
    let mut reply = reply.into_iter();
    let next = reply.next()?;
    let next: u64 = std::str::from_utf8(bytes(&next)?).ok()?.parse().ok()?;
    let Some(RedisValue::Array(found)) = reply.next() else {
        return None;
    };
    let mut found = found.iter().map(|text| bytes(text).map(<[u8]>::to_vec));
    let mut fields = HashFields::new();
    while let Some(field) = found.next() {
        fields.push((field?, found.next()??));
    }
    Some((fields, Some(next).filter(|next| *next != 0)))
}

/// The bytes of a text in a reply.
pub fn bytes(value: &RedisValue) -> Option<&[u8]> {
    match value {
        RedisValue::SimpleString(text) | RedisValue::BulkString(text) => Some(text.as_bytes()),
        RedisValue::StringBuffer(bytes) => Some(bytes),
        _ => None,
    }
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
    call(ctx, command, Scope::Plain, &[]).is_none_or(|called| called.errno == libc::ENOENT)
}
