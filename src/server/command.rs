//! Commands as the server calls them: registration, arguments, the way into the
//! core and back.

use std::ffi::{c_int, CStr, CString};

use redis_module::raw;

use super::ffi::{api, bytes_of, guarded, Arg, Ctx, Given};
use super::keyspace::{Access, ServerKeyspace};
use super::reply::Responder;
use super::shell::{shell, Shell};
use super::{blocking, command_info, effects, key_events, serve, turns, watching};
use crate::error::{self, Error};
use crate::lock::{
    self, Ask, Core, Decision, Effects, Keyspace, Mode, Now, Outcome, Refusal, Verdict, WaiterId,
};
use crate::{config, redisson};

/// A request for so many keys is long work: some hundred microseconds.
const MANY: usize = 128;

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

/// A command of the module: what the server is told about it, and what it does.
pub trait Command {
    const NAME: &'static CStr;
    /// The server's command flags, by name.
    const FLAGS: &'static CStr;
    /// ACL categories, where the server takes them from a module.
    const ACL: &'static CStr;
    const KEYS: Keys;
    /// How it is called, for the error on a wrong number of arguments.
    const USAGE: &'static str;
    /// What it does, in a few words, for COMMAND DOCS.
    const SUMMARY: &'static CStr;

    fn run(call: &Call<'_>) -> Result<Responder, Error>;
}

/// Registers a command. `false`: the server refused it.
pub fn register<C: Command>(ctx: Ctx) -> bool {
    // Of one whose keys are counted the server learns by `command_info`.
    let key = c_int::from(matches!(C::KEYS, Keys::One(_)));
    // Redis 7.0 asks the command itself when it routes in a cluster.
    let asks = matches!(C::KEYS, Keys::Counted(_));
    let mut flags = C::FLAGS.to_bytes().to_vec();
    flags.extend_from_slice(if asks { b" getkeys-api" } else { b"" });
    let Ok(flags) = CString::new(flags) else {
        return false;
    };
    let status = api!(RedisModule_CreateCommand(
        ctx.0,
        C::NAME.as_ptr(),
        Some(entry::<C>),
        flags.as_ptr(),
        key,
        key,
        key
    ));
    if status != Some(raw::REDISMODULE_OK as c_int) {
        ctx.warn(&format!(
            "rlock: the server refused the command {:?}",
            C::NAME
        ));
        return false;
    }
    let command = api!(RedisModule_GetCommand(ctx.0, C::NAME.as_ptr()));
    let Some(command) = command.filter(|command| !command.is_null()) else {
        return false;
    };
    api!(RedisModule_SetCommandACLCategories(
        command,
        C::ACL.as_ptr()
    ));
    command_info::describe::<C>(ctx, command)
}

unsafe extern "C" fn entry<C: Command>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let ctx = Ctx(ctx);
    if api!(RedisModule_IsKeysPositionRequest(ctx.0)).unwrap_or(0) != 0 {
        // SAFETY: the server passes `argc` strings.
        unsafe { tell_keys(ctx, argv, argc) };
        return raw::REDISMODULE_OK as c_int;
    }
    let fault = || Responder::from(Error::fault());
    let reply = guarded(ctx, C::USAGE, None, || {
        let shell = shell()?;
        let argc = usize::try_from(argc).unwrap_or(0);
        // SAFETY: the server passes `argc` strings, the first the command's name.
        let argv = unsafe { std::slice::from_raw_parts(argv, argc) };
        let args = argv.get(1..).unwrap_or_default();
        let nothing = Arg {
            bytes: &[],
            text: std::ptr::null_mut(),
        };
        let mut named = [nothing; 2];
        let count = args.len().min(named.len());
        for (slot, arg) in named.iter_mut().zip(args) {
            // SAFETY: the server keeps the arguments until the command returns.
            let bytes = unsafe { bytes_of(*arg) };
            *slot = Arg { bytes, text: *arg };
        }
        let call = Call {
            shell,
            ctx,
            args,
            given: Given(named.get(..count).unwrap_or_default()),
            first_key: match C::KEYS {
                Keys::None => None,
                Keys::One(_) => named.first(),
                Keys::Counted(_) => named.get(1),
            }
            .map(|arg| arg.bytes),
        };
        shell.in_command.set(true);
        let reply = C::run(&call).unwrap_or_else(Responder::from);
        if turns::attend(shell, ctx) {
            serve::arm_after_command(shell, ctx);
        }
        shell.in_command.set(false);
        Some(reply)
    });
    reply.unwrap_or_else(fault).send(ctx);
    raw::REDISMODULE_OK as c_int
}

/// Tells where the keys are of a command that begins with their number. It says
/// nothing of one that would be refused for that number.
///
/// # Safety
/// `argv` must be `argc` strings.
unsafe fn tell_keys(ctx: Ctx, argv: *mut *mut raw::RedisModuleString, argc: c_int) {
    let len = usize::try_from(argc).unwrap_or(0);
    // SAFETY: as the caller says.
    let argv = unsafe { std::slice::from_raw_parts(argv, len) };
    // SAFETY: the server keeps the arguments until the command returns.
    let count = argv.get(1).map(|arg| unsafe { bytes_of(*arg) });
    let count = count.and_then(|text| std::str::from_utf8(text).ok()?.parse::<c_int>().ok());
    let last = count.and_then(|count| count.checked_add(1));
    if let Some(last) = last.filter(|last| *last < argc) {
        for at in 2..=last {
            api!(RedisModule_KeyAtPos(ctx.0, at));
        }
    }
}

/// One call of a command.
pub struct Call<'a> {
    shell: &'static Shell,
    ctx: Ctx,
    args: &'a [*mut raw::RedisModuleString],
    /// The key and the owner, as a rule.
    given: Given<'a>,
    first_key: Option<&'a [u8]>,
}

impl<'a> Call<'a> {
    /// The arguments after the command's name.
    pub fn args(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // SAFETY: the server keeps the arguments until the command returns.
        self.args.iter().map(|arg| unsafe { bytes_of(*arg) })
    }

    pub fn db(&self) -> i32 {
        self.ctx.db()
    }

    pub fn client_id(&self) -> u64 {
        self.ctx.client_id()
    }

    /// This connection's id. `None` where all callers share one client: in a script
    /// or function, or without a client.
    pub fn connection(&self) -> Option<u64> {
        let flags = self.ctx.flags();
        let set = |flag: u32| flags & flag as i32 != 0;
        let script = set(raw::REDISMODULE_CTX_FLAGS_LUA);
        let multi = set(raw::REDISMODULE_CTX_FLAGS_MULTI);
        let deny = set(raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING);
        let client = self.client_id();
        (!script && (!deny || multi) && client != 0).then_some(client)
    }

    /// This connection's owner id, in Redisson's form `uuid:id`.
    pub fn own_id(&self) -> Option<String> {
        let client = self.connection()?;
        Some(format!("{}:{client}", self.shell.uuid))
    }

    /// In a cluster, whether a reader's lease keys lie in the slot of the lock.
    pub fn lease_key_fits(&self, key: &[u8], owner: &[u8]) -> Result<(), Error> {
        if !self.shell.server.cluster || redisson::lease_key_fits(key, owner) {
            return Ok(());
        }
        Err(Error::new(format!(
            "in a cluster the lease key of a reader would lie in another slot than {}: use a \
             name without braces, or with a whole hash tag",
            error::shown(key)
        )))
    }

    /// A hold may belong to a connection from now on.
    pub fn watches(&self) {
        watching::update(self.shell, self.ctx);
    }

    /// Whether the client may wait: not in MULTI, a script, a function, or where
    /// the server says so.
    pub fn may_block(&self) -> bool {
        let never = raw::REDISMODULE_CTX_FLAGS_LUA
            | raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        self.ctx.flags() & never as i32 == 0
    }

    /// Puts a request to the core and tells what it decides.
    pub fn decide<T>(
        &self,
        ask: impl FnOnce(&mut Decision<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        self.put(false, |core, ks, now, out| {
            lock::decide(core, ks, now, out, ask)
        })
    }

    /// The same for a request that may have to stand in a queue, if it `waits`.
    pub fn request(
        &self,
        waits: bool,
        ask: impl FnOnce(&mut Decision<'_>) -> Result<Verdict, Refusal>,
    ) -> Result<Verdict, Error> {
        self.put(waits, |core, ks, now, out| {
            lock::request(core, ks, now, out, ask)
        })
    }

    fn put<T>(
        &self,
        waits: bool,
        ask: impl FnOnce(&mut Core, &mut dyn Keyspace, Now, &mut Effects) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let (shell, ctx) = (self.shell, self.ctx);
        serve::attend(shell, ctx);
        let given = self.given;
        let ks = ServerKeyspace::new(shell, ctx, Access::Write, given);
        let mut ks = ks.within_slot_of(self.first_key);
        let mut out = shell.spare.take();
        let answer = match shell.core.try_borrow_mut() {
            Ok(mut core) => {
                let now = if waits || core.waiting() > 0 || core.has_places() {
                    shell.now()
                } else {
                    shell.now_by_wall()
                };
                core.rules = config::rules();
                ask(&mut core, &mut ks, now, &mut out)
            }
            Err(_) => return Err(Error::busy()),
        };
        drop(ks);
        effects::tell(shell, ctx, given, &mut out);
        shell.spare.set(out);
        key_events::watch(shell, ctx);
        serve::arm_after_command(shell, ctx);
        Ok(answer?)
    }

    /// Looks without changing anything.
    pub fn inspect<T>(
        &self,
        look: impl FnOnce(&Core, &mut ServerKeyspace<'_>, Now) -> T,
    ) -> Result<T, Error> {
        let mut ks = ServerKeyspace::new(self.shell, self.ctx, Access::Read, self.given);
        match self.shell.core.try_borrow() {
            Ok(core) => Ok(look(&core, &mut ks, self.shell.now())),
            Err(_) => Err(Error::busy()),
        }
    }

    /// The reply to a request for several keys. Where they are very many the client gets
    /// it in the next turn of the event loop, so that others have theirs before the
    /// next such request in a pipeline. `grant`: what is to be given back if the
    /// reply is lost.
    pub fn after_long_work(
        &self,
        keys: &[&[u8]],
        outcome: Outcome,
        grant: Option<&Ask<'_>>,
    ) -> Responder {
        let first = keys
            .get(..1)
            .filter(|_| keys.len() >= MANY && self.may_block());
        let Some(first) = first else {
            return Responder::of(&outcome);
        };
        let id = self
            .shell
            .core
            .try_borrow_mut()
            .map(|mut core| match grant {
                Some(ask) => core.on_its_way(keys, ask),
                None => core.number(),
            });
        watching::update(self.shell, self.ctx);
        match id {
            Ok(id) if blocking::block(self.shell, self.ctx, id, first) => {
                blocking::settle(self.shell, self.ctx, id, outcome);
                Responder::Later
            }
            Ok(id) => {
                if let Ok(mut core) = self.shell.core.try_borrow_mut() {
                    core.confirm(id);
                }
                Responder::of(&outcome)
            }
            Err(_) => Responder::of(&outcome),
        }
    }

    /// Blocks the client until its request, which is in the queue, is settled. A
    /// client that the server does not let wait is answered as for a try.
    pub fn block(&self, waiter: WaiterId, keys: &[&[u8]], mode: Mode) -> Responder {
        watching::update(self.shell, self.ctx);
        if mode != Mode::Exclusive {
            key_events::watch_hashes(self.shell, self.ctx);
        }
        if blocking::block(self.shell, self.ctx, waiter, keys) {
            return Responder::Later;
        }
        if let Ok(mut core) = self.shell.core.try_borrow_mut() {
            core.leave(waiter);
        }
        Responder::Null
    }
}
