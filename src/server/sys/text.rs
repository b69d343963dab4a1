//! Server strings: our own, and the arguments of a command.

use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::api::api;

/// A server string: our own, freed at the end, or an argument that the server keeps for
/// as long as the command runs.
pub struct Text<'a> {
    text: NonNull<raw::RedisModuleString>,
    owned: bool,
    argument: PhantomData<&'a raw::RedisModuleString>,
}

impl Text<'static> {
    /// A new string. `None` when the server cannot make one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let call = api!(RedisModule_CreateString)?;
        let (data, len) = (bytes.as_ptr().cast::<c_char>(), bytes.len());
        // SAFETY: `len` bytes stand there, which the server copies; the new string is ours.
        unsafe { Self::adopt(call(ptr::null_mut(), data, len)) }
    }

    /// A number as the server writes it.
    pub fn number(number: i64) -> Option<Self> {
        let call = api!(RedisModule_CreateStringFromLongLong)?;
        // SAFETY: it takes a number; the new string is ours.
        unsafe { Self::adopt(call(ptr::null_mut(), number)) }
    }

    /// # Safety
    /// Null, or a string that is ours to free.
    pub(super) unsafe fn adopt(text: *mut raw::RedisModuleString) -> Option<Self> {
        NonNull::new(text).map(|text| Self {
            text,
            owned: true,
            argument: PhantomData,
        })
    }
}

impl Text<'_> {
    pub(super) fn as_ptr(&self) -> *mut raw::RedisModuleString {
        self.text.as_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the string lives as long as `self`, and nobody changes it: the server
        // copies one that others hold before it does.
        unsafe { bytes_of(self.as_ptr()) }
    }
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        if let Some(call) = api!(RedisModule_FreeString).filter(|_| self.owned) {
            // SAFETY: it is ours, and nobody uses it after this.
            unsafe { call(ptr::null_mut(), self.as_ptr()) };
        }
    }
}

/// The bytes of a server string.
///
/// # Safety
/// The string must stay alive and unchanged for `'a`.
pub(super) unsafe fn bytes_of<'a>(text: *const raw::RedisModuleString) -> &'a [u8] {
    let Some(call) = api!(RedisModule_StringPtrLen) else {
        return &[];
    };
    let mut len = 0;
    // SAFETY: the string is alive, as the caller says.
    let data = unsafe { call(text, &raw mut len) };
    if data.is_null() {
        return &[];
    }
    // SAFETY: the server says that `len` bytes stand there, and the caller that they stay.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }
}

/// The arguments of the command that runs.
#[derive(Clone, Copy)]
pub struct RawArgs<'a>(&'a [*mut raw::RedisModuleString]);

impl<'a> RawArgs<'a> {
    /// # Safety
    /// `argv` is `argc` strings that stay for `'a`.
    pub(super) unsafe fn new(argv: *mut *mut raw::RedisModuleString, argc: c_int) -> Self {
        let len = usize::try_from(argc).unwrap_or(0);
        if argv.is_null() {
            return Self(&[]);
        }
        // SAFETY: as the caller says.
        Self(unsafe { std::slice::from_raw_parts(argv, len) })
    }

    /// Without the first, which is the command's name.
    pub fn without_name(self) -> Self {
        Self(self.0.get(1..).unwrap_or_default())
    }

    pub fn len(self) -> usize {
        self.0.len()
    }

    pub fn get(self, at: usize) -> Option<Arg<'a>> {
        let text = NonNull::new(*self.0.get(at)?)?;
        // SAFETY: the server keeps the arguments until the command returns.
        let bytes = unsafe { bytes_of(text.as_ptr()) };
        Some(Arg { text, bytes })
    }

    /// Their bytes.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().map(|arg| {
            // SAFETY: the server keeps the arguments until the command returns.
            unsafe { bytes_of(*arg) }
        })
    }
}

/// One argument of a command: its bytes, and the server's string.
#[derive(Clone, Copy)]
pub struct Arg<'a> {
    text: NonNull<raw::RedisModuleString>,
    bytes: &'a [u8],
}

impl<'a> Arg<'a> {
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// The first arguments of the command that runs, if one does. A name or an owner that is
/// among them need not be made into a server string again: most of what an uncontended
/// lock costs is allocation.
#[derive(Clone, Copy, Default)]
pub struct FirstArgs<'a>(pub &'a [Option<Arg<'a>>]);

impl<'a> FirstArgs<'a> {
    pub fn text(self, bytes: &[u8]) -> Option<Text<'a>> {
        let same = self.0.iter().flatten().find(|arg| arg.bytes == bytes);
        match same {
            Some(arg) => Some(Text {
                text: arg.text,
                owned: false,
                argument: PhantomData,
            }),
            None => Text::new(bytes),
        }
    }
}
