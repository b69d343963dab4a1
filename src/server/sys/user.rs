//! The user of whoever has sent the command that runs, and which keys and channels it may use.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;

use redis_module::raw;

use super::api::{api, OK};
use super::call::{call, Scope};
use super::ctx::Ctx;
use super::text::Text;
use crate::lock::ClientId;

/// Asks the server whether a user may do something with what has this name.
type Check =
    unsafe extern "C" fn(*mut raw::RedisModuleUser, *mut raw::RedisModuleString, c_int) -> c_int;

/// In a script or a function it is that of the caller.
pub struct User<'a> {
    /// `None`: nobody's command, another module's or the server's own. It may all.
    user: Option<NonNull<raw::RedisModuleUser>>,
    /// The server does not let it go while the command runs.
    ctx: PhantomData<Ctx<'a>>,
}

impl<'a> User<'a> {
    /// `None`: the server does not say.
    pub fn of(ctx: Ctx<'a>) -> Option<Self> {
        let name = api!(RedisModule_GetCurrentUserName)?;
        if !has_one(ctx)? {
            return Some(Self {
                user: None,
                ctx: PhantomData,
            });
        }
        // SAFETY: the context is valid, and there is a user, of whom the server takes the
        // name without a look; the new string is ours.
        Self::named(unsafe { Text::adopt(name(ctx.as_ptr())) }?)
    }

    /// That of a connection. `None`: it has none, or the server does not say.
    pub fn of_client(ctx: Ctx<'a>, client: ClientId) -> Option<Self> {
        let name = api!(RedisModule_GetClientUserNameById)?;
        // SAFETY: the context is valid; the server looks whether there is such a client,
        // and whether it has a user; the new string is ours.
        Self::named(unsafe { Text::adopt(name(ctx.as_ptr(), client.get())) }?)
    }

    fn named(name: Text<'_>) -> Option<Self> {
        let find = api!(RedisModule_GetModuleUserFromUserName)?;
        // SAFETY: the name is a string; what is returned is ours.
        let user = NonNull::new(unsafe { find(name.as_ptr()) })?;
        Some(Self {
            user: Some(user),
            ctx: PhantomData,
        })
    }

    /// Whether it may read a key of this name.
    pub fn may_read(&self, name: &[u8]) -> bool {
        let check = api!(RedisModule_ACLCheckKeyPermissions);
        self.may(check, name, raw::REDISMODULE_CMD_KEY_ACCESS)
    }

    /// Whether it may subscribe to a channel of this name.
    pub fn may_subscribe(&self, name: &[u8]) -> bool {
        let check = api!(RedisModule_ACLCheckChannelPermissions);
        self.may(check, name, raw::REDISMODULE_CMD_CHANNEL_SUBSCRIBE)
    }

    /// Whether it may run a command of ours, which is named, with this key.
    pub fn may_run(&self, name: &[u8], key: &Text<'_>) -> bool {
        let Some(name) = Text::new(name) else {
            return false;
        };
        // SAFETY: both live until it is done.
        unsafe { self.may_run_these(&mut [name.as_ptr(), key.as_ptr()]) }
    }

    /// The same with these arguments; the first is the command's name.
    pub fn may_run_all(&self, args: &[&[u8]]) -> bool {
        let texts: Option<Vec<Text<'_>>> = args.iter().map(|arg| Text::new(arg)).collect();
        let texts = texts.unwrap_or_default();
        let mut args: Vec<_> = texts.iter().map(Text::as_ptr).collect();
        // SAFETY: all of them live until it is done.
        unsafe { !args.is_empty() && self.may_run_these(&mut args) }
    }

    /// # Safety
    /// All are strings that are alive; there is one at least.
    unsafe fn may_run_these(&self, args: &mut [*mut raw::RedisModuleString]) -> bool {
        let Some(user) = self.user else {
            return true;
        };
        let Some(check) = api!(RedisModule_ACLCheckCommandPermissions) else {
            return false;
        };
        let count = c_int::try_from(args.len()).unwrap_or(0);
        // SAFETY: the user is not freed yet; the arguments are as the caller says.
        unsafe { check(user.as_ptr(), args.as_mut_ptr(), count) == OK }
    }

    fn may(&self, check: Option<Check>, name: &[u8], what: u32) -> bool {
        let Some(user) = self.user else {
            return true;
        };
        let (Some(check), Some(name)) = (check, Text::new(name)) else {
            return false;
        };
        // SAFETY: the user is not freed yet, and the name is a string.
        unsafe { check(user.as_ptr(), name.as_ptr(), what as c_int) == OK }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        if let (Some(call), Some(user)) = (api!(RedisModule_FreeModuleUser), self.user) {
            // SAFETY: it is ours, and not used after this. The server's own user stays.
            unsafe { call(user.as_ptr()) };
        }
    }
}

/// Whether the command is some user's: to ask for the name of nobody would crash the
/// server. A command that is called for the user is refused for that before anything else,
/// and this one, without arguments, for those next.
fn has_one(ctx: Ctx<'_>) -> Option<bool> {
    let called = call(ctx, c"GET", Scope::User, &[])?;
    Some(called.errno != libc::ENOTSUP)
}
