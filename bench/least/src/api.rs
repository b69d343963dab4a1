//! The server's module API, as far as it is needed, and all unsafe code. The server calls us
//! one at a time, and what it lends for a call has that call's lifetime here.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use redis_module::alloc::RedisAlloc;
use redis_module::raw;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const REFUSED: c_int = raw::REDISMODULE_ERR as c_int;

/// Memory comes from the server, so that `used_memory` counts it.
#[global_allocator]
static ALLOCATOR: RedisAlloc = RedisAlloc;

/// The string `1`: the value of each field.
static ONE: AtomicPtr<raw::RedisModuleString> = AtomicPtr::new(ptr::null_mut());

/// Whether the command itself is replicated.
static VERBATIM: AtomicBool = AtomicBool::new(false);

/// What the module does. `None`: the arguments are wrong, or the server refused something.
pub trait Module {
    const NAME: &'static CStr;

    fn loaded();
    fn acquire(ctx: Ctx<'_>, args: &[Text<'_>]) -> Option<Reply>;
    fn release(ctx: Ctx<'_>, args: &[Text<'_>]) -> Option<Reply>;
    /// A blocked client went, or its time is over.
    fn left(client: Id);
}

/// What a command replies.
pub enum Reply {
    Number(i64),
    Null,
    Error(&'static CStr),
    /// When the blocked client is woken.
    Later,
}

/// A function of the API. Old servers lack some, so that each is looked up before.
macro_rules! api {
    ($name:ident) => {{
        // SAFETY: the server sets it at load, before anything else of ours runs, and it never
        // changes after that.
        unsafe { raw::$name }
    }};
}

/// Wall clock, ms.
pub fn now() -> i64 {
    api!(RedisModule_Milliseconds).map_or(0, |call| {
        // SAFETY: it takes nothing.
        unsafe { call() }
    })
}

/// The context of a call.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    ctx: NonNull<raw::RedisModuleCtx>,
    call: PhantomData<&'a ()>,
}

impl Ctx<'_> {
    fn as_ptr(self) -> *mut raw::RedisModuleCtx {
        self.ctx.as_ptr()
    }

    /// The database that is selected.
    pub fn db(self) -> usize {
        let db = api!(RedisModule_GetSelectedDb).map(|call| {
            // SAFETY: the context is valid.
            unsafe { call(self.as_ptr()) }
        });
        db.and_then(|db| usize::try_from(db).ok())
            .unwrap_or_default()
    }

    /// Not in MULTI, nor in a script.
    pub fn may_block(self) -> bool {
        let denied = raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING as c_int;
        api!(RedisModule_GetContextFlags).is_some_and(|call| {
            // SAFETY: the context is valid.
            unsafe { call(self.as_ptr()) & denied == 0 }
        })
    }

    /// Blocks the client for so many ms, 0: for as long as it takes.
    pub fn block<M: Module>(self, ms: i64) -> Option<Blocked> {
        let block = api!(RedisModule_BlockClient)?;
        let watch = api!(RedisModule_SetDisconnectCallback)?;
        let on_end = Some(on_end::<M> as Function);
        // SAFETY: the context is valid; both callbacks know that the data is a token or null,
        // of which nothing is to be freed.
        let client = NonNull::new(unsafe { block(self.as_ptr(), on_end, on_end, None, ms) })?;
        // SAFETY: the client is blocked.
        unsafe { watch(client.as_ptr(), Some(on_disconnect::<M>)) };
        Some(Blocked(Id(client)))
    }

    /// For WATCH and client-side caching.
    pub fn touched(self, key: Text<'_>) {
        if let Some(call) = api!(RedisModule_SignalModifiedKey) {
            // SAFETY: context and name are valid.
            unsafe { call(self.as_ptr(), key.as_ptr()) };
        }
    }

    /// An owner has taken a free lock.
    pub fn replicate_taken(self, key: Text<'_>, owner: Text<'_>, end: i64) {
        if VERBATIM.load(Relaxed) {
            return self.replicate_verbatim();
        }
        let (ctx, one) = (self.as_ptr(), ONE.load(Relaxed));
        let Some(call) = api!(RedisModule_Replicate) else {
            return;
        };
        let (hset, expire) = (c"HSET".as_ptr(), c"PEXPIREAT".as_ptr());
        let (key, owner) = (key.as_ptr(), owner.as_ptr());
        // SAFETY: `s` takes a string, of which all are valid, and `l` a number.
        unsafe {
            call(ctx, hset, c"sss".as_ptr(), key, owner, one);
            call(ctx, expire, c"sl".as_ptr(), key, end);
        }
    }

    /// The lock has become free.
    pub fn replicate_left(self, key: Text<'_>) {
        if VERBATIM.load(Relaxed) {
            return self.replicate_verbatim();
        }
        if let Some(call) = api!(RedisModule_Replicate) {
            let format = c"s".as_ptr();
            // SAFETY: `s` takes a string, which is valid.
            unsafe { call(self.as_ptr(), c"DEL".as_ptr(), format, key.as_ptr()) };
        }
    }

    /// One owner has left the lock to another.
    pub fn replicate_passed(self, key: Text<'_>, owner: Text<'_>, end: i64) {
        self.replicate_left(key);
        if !VERBATIM.load(Relaxed) {
            self.replicate_taken(key, owner, end);
        }
    }

    fn replicate_verbatim(self) {
        if let Some(call) = api!(RedisModule_ReplicateVerbatim) {
            // SAFETY: the context is valid.
            unsafe { call(self.as_ptr()) };
        }
    }

    fn reply(self, reply: &Reply) {
        let ctx = self.as_ptr();
        match reply {
            Reply::Number(number) => api!(RedisModule_ReplyWithLongLong).map(|call| {
                // SAFETY: the context is valid.
                unsafe { call(ctx, *number) }
            }),
            Reply::Null => api!(RedisModule_ReplyWithNull).map(|call| {
                // SAFETY: as above.
                unsafe { call(ctx) }
            }),
            Reply::Error(text) => api!(RedisModule_ReplyWithError).map(|call| {
                // SAFETY: as above, and the text is a C string.
                unsafe { call(ctx, text.as_ptr()) }
            }),
            Reply::Later => None,
        };
    }
}

/// A string that the server lends.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text<'a> {
    text: NonNull<raw::RedisModuleString>,
    call: PhantomData<&'a ()>,
}

impl Text<'_> {
    fn as_ptr(&self) -> *mut raw::RedisModuleString {
        self.text.as_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        let Some(call) = api!(RedisModule_StringPtrLen) else {
            return &[];
        };
        let mut len = 0;
        // SAFETY: the string is valid.
        let data = unsafe { call(self.as_ptr(), &raw mut len) };
        // SAFETY: the server says that so many bytes stand there, for as long as the string does.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }
    }

    pub fn number(&self) -> Option<i64> {
        let call = api!(RedisModule_StringToLongLong)?;
        let mut number = 0;
        // SAFETY: the string is valid.
        let status = unsafe { call(self.as_ptr(), &raw mut number) };
        (status == OK).then_some(number)
    }

    /// The same for longer than the call.
    pub fn hold(&self) -> Option<Held> {
        let call = api!(RedisModule_HoldString)?;
        // SAFETY: the string is valid; without a context it is ours to free.
        let text = NonNull::new(unsafe { call(ptr::null_mut(), self.as_ptr()) })?;
        let call = PhantomData;
        Some(Held(Text { text, call }))
    }
}

/// A string that is ours.
pub struct Held(Text<'static>);

// SAFETY: whoever calls us has the server to itself, on whichever thread.
unsafe impl Send for Held {}

impl Held {
    pub fn text(&self) -> Text<'_> {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(call) = api!(RedisModule_FreeString) {
            // SAFETY: it is ours, and not used after this.
            unsafe { call(ptr::null_mut(), self.0.as_ptr()) };
        }
    }
}

/// Which blocked client.
#[derive(Clone, Copy, PartialEq)]
pub struct Id(NonNull<raw::RedisModuleBlockedClient>);

/// A blocked client, which the server keeps until it is woken, whatever becomes of it.
pub struct Blocked(Id);

// SAFETY: as for strings.
unsafe impl Send for Blocked {}

impl Blocked {
    pub fn id(&self) -> Id {
        self.0
    }

    /// Its reply is this token.
    pub fn wake(self, token: i64) {
        unblock(self.0, token);
        std::mem::forget(self);
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        unblock(self.0, 0);
    }
}

/// Once for each blocked client. The data that the callbacks get is the token itself.
fn unblock(Id(client): Id, token: i64) {
    if let Some(call) = api!(RedisModule_UnblockClient) {
        let data = ptr::without_provenance_mut::<c_void>(token as usize);
        // SAFETY: the client is blocked, and was not unblocked before.
        unsafe { call(client.as_ptr(), data) };
    }
}

/// An open key. Its last use is before the call is over in which it was opened.
pub struct Key<'a> {
    key: NonNull<raw::RedisModuleKey>,
    call: PhantomData<&'a ()>,
}

impl<'a> Key<'a> {
    /// For reading and writing.
    pub fn open(ctx: Ctx<'a>, name: Text<'_>) -> Option<Self> {
        let open = api!(RedisModule_OpenKey)?;
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        // SAFETY: context and name are valid.
        let key = NonNull::new(unsafe { open(ctx.as_ptr(), name.as_ptr(), mode as c_int) })?;
        let call = PhantomData;
        Some(Self { key, call })
    }

    fn is(&self, kind: isize) -> bool {
        api!(RedisModule_KeyType).is_some_and(|call| {
            // SAFETY: the key is open.
            unsafe { call(self.key.as_ptr()) == kind as c_int }
        })
    }

    pub fn is_empty(&self) -> bool {
        self.is(raw::REDISMODULE_KEYTYPE_EMPTY)
    }

    /// Whether it is a hash with this field.
    pub fn has(&self, owner: Text<'_>) -> bool {
        let mut has: c_int = 0;
        if let Some(call) = api!(RedisModule_HashGet).filter(|_| self.is(HASH)) {
            let (key, flags) = (self.key.as_ptr(), raw::REDISMODULE_HASH_EXISTS as c_int);
            // SAFETY: the key is open and a hash; a field and where to say it, ended by NULL.
            unsafe { call(key, flags, owner.as_ptr(), &raw mut has, NULL) };
        }
        has != 0
    }

    /// The key is empty: a hash with the one field.
    pub fn add(&self, owner: Text<'_>) -> Option<()> {
        let call = api!(RedisModule_HashSet)?;
        let (key, one) = (self.key.as_ptr(), ONE.load(Relaxed));
        // SAFETY: the key is open and empty; a field and its value, ended by NULL.
        unsafe { call(key, 0, owner.as_ptr(), one, NULL) };
        Some(())
    }

    /// The key is a hash: another field in the place of one, which may be the same.
    pub fn exchange(&self, old: Text<'_>, new: Text<'_>) -> Option<()> {
        let call = api!(RedisModule_HashSet)?;
        let (key, one) = (self.key.as_ptr(), ONE.load(Relaxed));
        let (old, new) = (old.as_ptr(), new.as_ptr());
        // SAFETY: the key is open and a hash; two fields and their values, ended by NULL. Only
        // behind the second the server looks whether any field is left.
        unsafe { call(key, 0, old, raw::REDISMODULE_HASH_DELETE, new, one, NULL) };
        Some(())
    }

    /// The key exists.
    pub fn expire_at(&self, end: i64) -> Option<()> {
        let call = api!(RedisModule_SetAbsExpire)?;
        // SAFETY: the key is open and exists.
        done(unsafe { call(self.key.as_ptr(), end) })
    }

    pub fn delete(&self) -> Option<()> {
        let call = api!(RedisModule_DeleteKey)?;
        // SAFETY: the key is open.
        done(unsafe { call(self.key.as_ptr()) })
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if let Some(call) = api!(RedisModule_CloseKey) {
            // SAFETY: it is open, and not used after this.
            unsafe { call(self.key.as_ptr()) };
        }
    }
}

const HASH: isize = raw::REDISMODULE_KEYTYPE_HASH;
const NULL: *mut c_void = ptr::null_mut();

fn done(status: c_int) -> Option<()> {
    (status == OK).then_some(())
}

/// As the server calls commands, and what blocked clients get.
type Function = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    *mut *mut raw::RedisModuleString,
    c_int,
) -> c_int;

/// Runs a command, and replies. No panic crosses into the server.
///
/// # Safety
/// For the server: `argv` is `argc` strings, the first the command's name.
unsafe fn run(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    command: fn(Ctx<'_>, &[Text<'_>]) -> Option<Reply>,
) -> c_int {
    let Some(ctx) = NonNull::new(ctx) else {
        return REFUSED;
    };
    let call = PhantomData;
    let ctx = Ctx { ctx, call };
    let len = usize::try_from(argc).unwrap_or_default();
    // SAFETY: as the caller says; a `Text` is no more than such a pointer.
    let args = unsafe { std::slice::from_raw_parts(argv.cast::<Text<'_>>(), len) };
    let args = args.get(1..).unwrap_or_default();
    let reply = catch_unwind(AssertUnwindSafe(|| command(ctx, args)));
    let wrong = Reply::Error(c"ERR wrong arguments, or the server refused");
    ctx.reply(&reply.ok().flatten().unwrap_or(wrong));
    OK
}

/// # Safety
/// For the server.
unsafe extern "C" fn acquire<M: Module>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { run(ctx, argv, argc, M::acquire) }
}

/// # Safety
/// For the server.
unsafe extern "C" fn release<M: Module>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { run(ctx, argv, argc, M::release) }
}

/// A wait is over: by `wake`, which leaves the token, or since its time is.
///
/// # Safety
/// For the server, about a client that `block` blocked.
unsafe extern "C" fn on_end<M: Module>(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    let end = |ctx: Ctx<'_>, _: &[Text<'_>]| {
        let data = api!(RedisModule_GetBlockedClientPrivateData)?;
        let client = api!(RedisModule_GetBlockedClientHandle)?;
        // SAFETY: the context is one of a blocked client.
        let (data, client) = unsafe { (data(ctx.as_ptr()), client(ctx.as_ptr())) };
        if data.is_null() {
            M::left(Id(NonNull::new(client)?));
            return Some(Reply::Null);
        }
        Some(Reply::Number(data.addr() as i64))
    };
    // SAFETY: as the caller says; no argument is looked at.
    unsafe { run(ctx, NonNull::dangling().as_ptr(), 0, end) }
}

/// # Safety
/// For the server, about a client that `block` blocked.
unsafe extern "C" fn on_disconnect<M: Module>(
    _ctx: *mut raw::RedisModuleCtx,
    client: *mut raw::RedisModuleBlockedClient,
) {
    if let Some(client) = NonNull::new(client) {
        // What is left of a panic is that the client stands in its queue.
        let _ = catch_unwind(AssertUnwindSafe(|| M::left(Id(client))));
    }
}

/// # Safety
/// For the server: `argv` is `argc` strings, what stands behind the module's path.
pub unsafe fn load<M: Module>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let version = raw::REDISMODULE_APIVER_1 as c_int;
    // SAFETY: the server passes the context, and copies the name.
    if unsafe { raw::Export_RedisModule_Init(ctx, M::NAME.as_ptr(), 1, version) } != OK {
        return REFUSED;
    }
    // SAFETY: as the caller says; no memory of ours is to be had before this.
    let loaded = catch_unwind(AssertUnwindSafe(|| unsafe {
        prepare::<M>(ctx, argv, argc)
    }));
    match loaded.ok().flatten() {
        Some(()) => OK,
        None => REFUSED,
    }
}

/// # Safety
/// As for `load`.
unsafe fn prepare<M: Module>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> Option<()> {
    let len = usize::try_from(argc).ok().filter(|len| *len > 0);
    let args: &[Text<'_>] = match len {
        None => &[],
        // SAFETY: as the caller says.
        Some(len) => unsafe { std::slice::from_raw_parts(argv.cast(), len) },
    };
    match args {
        [] => {}
        [word] if word.bytes() == b"verbatim" => VERBATIM.store(true, Relaxed),
        _ => return None,
    }
    let create = api!(RedisModule_CreateString)?;
    // SAFETY: one byte of a C string; without a context it is ours, and stays.
    ONE.store(
        unsafe { create(ptr::null_mut(), c"1".as_ptr(), 1) },
        Relaxed,
    );
    let options = api!(RedisModule_SetModuleOptions)?;
    // SAFETY: the context is valid. We say ourselves which keys have changed.
    unsafe {
        options(
            ctx,
            raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED as c_int,
        )
    };
    let register = api!(RedisModule_CreateCommand)?;
    let command = |name: &CStr, function: Function, flags: &CStr| {
        let flags: *const c_char = flags.as_ptr();
        // SAFETY: the context is valid; the server copies name and flags.
        done(unsafe { register(ctx, name.as_ptr(), Some(function), flags, 1, 1, 1) })
    };
    command(c"LEAST.ACQUIRE", acquire::<M>, c"write deny-oom")?;
    command(c"LEAST.RELEASE", release::<M>, c"write")?;
    M::loaded();
    Some(())
}
