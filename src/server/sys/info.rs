//! INFO: what the server says of itself, and what we say of us.

use std::ffi::{c_int, CStr, CString};
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::api::{api, OK};
use super::ctx::Ctx;
use super::global::Callback;
use super::guard::guarded;

/// A section of INFO. Ours, for that of `redis-module` leaks each field that it gives.
pub struct ServerInfo<'a> {
    ctx: Ctx<'a>,
    info: NonNull<raw::RedisModuleServerInfoData>,
}

impl<'a> ServerInfo<'a> {
    pub fn section(ctx: Ctx<'a>, name: &CStr) -> Option<Self> {
        let call = api!(RedisModule_GetServerInfo)?;
        // SAFETY: the context is valid, the name is a C string.
        let info = NonNull::new(unsafe { call(ctx.as_ptr(), name.as_ptr()) })?;
        Some(Self { ctx, info })
    }

    /// A field; `None`: there is none by this name.
    pub fn text(&self, name: &CStr) -> Option<&str> {
        let call = api!(RedisModule_ServerInfoGetFieldC)?;
        // SAFETY: the section is not freed yet, the name is a C string.
        let text = unsafe { call(self.info.as_ptr(), name.as_ptr()) };
        if text.is_null() {
            return None;
        }
        // SAFETY: a C string that lives as long as the section.
        unsafe { CStr::from_ptr(text) }.to_str().ok()
    }

    /// A field that is a number.
    pub fn number(&self, name: &CStr) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}

impl Drop for ServerInfo<'_> {
    fn drop(&mut self) {
        if let Some(call) = api!(RedisModule_FreeServerInfo) {
            // SAFETY: it is ours, and not used after this.
            unsafe { call(self.ctx.as_ptr(), self.info.as_ptr()) };
        }
    }
}

/// What a field of INFO says.
pub enum InfoValue {
    Number(u64),
    Text(&'static str),
}

/// Who is asked for our section of INFO.
pub trait OnInfo {
    /// The fields, in the order in which they are shown; the server puts the module's name
    /// before each. `None`: there is nothing to show now.
    fn fields(here: Callback<'_>) -> Option<Vec<(&'static CStr, InfoValue)>>;
}

/// Registers our callback for INFO, in place of the one of `redis-module`.
pub fn show_info<H: OnInfo>(ctx: Ctx<'_>) {
    if let Some(call) = api!(RedisModule_RegisterInfoFunc) {
        // SAFETY: the context is valid.
        unsafe { call(ctx.as_ptr(), Some(on_info::<H>)) };
    }
}

/// Also called for a crash report, on any thread, and when our own code may be what
/// crashed: then it says nothing.
///
/// # Safety
/// For the server.
unsafe extern "C" fn on_info<H: OnInfo>(
    info: *mut raw::RedisModuleInfoCtx,
    for_crash_report: c_int,
) {
    if for_crash_report != 0 {
        return;
    }
    // SAFETY: INFO is a command, which runs with the server's lock held.
    let here = unsafe { Callback::new() };
    let fields = guarded(None, "INFO", || H::fields(here)).flatten();
    let (Some(fields), Some(section), Some(number), Some(text)) = (
        fields,
        api!(RedisModule_InfoAddSection),
        api!(RedisModule_InfoAddFieldULongLong),
        api!(RedisModule_InfoAddFieldCString),
    ) else {
        return;
    };
    // SAFETY: the server passes it to this callback; no name is a section's own.
    let added = unsafe { section(info, ptr::null()) };
    // Else another section was asked for.
    if added == OK {
        for (name, value) in fields {
            match value {
                // SAFETY: as above, and the name is a C string.
                InfoValue::Number(value) => unsafe { number(info, name.as_ptr(), value) },
                InfoValue::Text(value) => {
                    let value = CString::new(value).unwrap_or_default();
                    // SAFETY: as above; the text is copied.
                    unsafe { text(info, name.as_ptr(), value.as_ptr()) }
                }
            };
        }
    }
}
