//! Commands as the server calls them: registration, arguments, the way into the
//! core and back.

use std::ffi::{c_int, CStr};

use redis_module::raw;

use super::ffi::{api, bytes_of, guarded, Arg, Ctx, Given};
use super::keyspace::{Access, ServerKeyspace};
use super::reply::Responder;
use super::shell::{shell, Shell};
use super::{blocking, effects, events, key_events, serve};
use crate::error::Error;
use crate::lock::{Core, Effects, Now, Refusal, WaiterId};

/// A command of the module: what the server is told about it, and what it does.
pub trait Command {
    const NAME: &'static CStr;
    /// The server's command flags, by name.
    const FLAGS: &'static CStr;
    /// ACL categories, where the server takes them from a module.
    const ACL: &'static CStr;
    /// Whether the first argument is a key.
    const KEYED: bool;
    /// How it is called, for the error on a wrong number of arguments.
    const USAGE: &'static str;

    fn run(call: &Call<'_>) -> Result<Responder, Error>;
}

/// Registers a command. `false`: the server refused it.
pub fn register<C: Command>(ctx: Ctx) -> bool {
    let key = c_int::from(C::KEYED);
    let status = api!(RedisModule_CreateCommand(
        ctx.0,
        C::NAME.as_ptr(),
        Some(entry::<C>),
        C::FLAGS.as_ptr(),
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
    if let Some(command) = command.filter(|command| !command.is_null()) {
        api!(RedisModule_SetCommandACLCategories(
            command,
            C::ACL.as_ptr()
        ));
    }
    true
}

unsafe extern "C" fn entry<C: Command>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let ctx = Ctx(ctx);
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
        };
        Some(C::run(&call).unwrap_or_else(Responder::from))
    });
    reply.unwrap_or_else(fault).send(ctx);
    raw::REDISMODULE_OK as c_int
}

/// One call of a command.
pub struct Call<'a> {
    shell: &'static Shell,
    ctx: Ctx,
    args: &'a [*mut raw::RedisModuleString],
    /// The key and the owner, as a rule.
    given: Given<'a>,
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

    /// This connection's owner id, in Redisson's form `uuid:id`. `None` where all
    /// callers share one client: in a script or function, or without a client.
    pub fn own_id(&self) -> Option<String> {
        let flags = self.ctx.flags();
        let set = |flag: u32| flags & flag as i32 != 0;
        let script = set(raw::REDISMODULE_CTX_FLAGS_LUA);
        let multi = set(raw::REDISMODULE_CTX_FLAGS_MULTI);
        let deny = set(raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING);
        let client = self.client_id();
        if script || (deny && !multi) || client == 0 {
            return None;
        }
        Some(format!("{}:{client}", self.shell.uuid))
    }

    /// Whether the client may wait: not in MULTI, a script, a function, or where
    /// the server says so.
    pub fn may_block(&self) -> bool {
        let never = raw::REDISMODULE_CTX_FLAGS_LUA
            | raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        self.ctx.flags() & never as i32 == 0
    }

    /// Puts a request to the core and carries out what it decides. `waits`: it
    /// may have to stand in a queue.
    pub fn decide<T>(
        &self,
        waits: bool,
        ask: impl FnOnce(&mut Core, &mut ServerKeyspace<'_>, Now, &mut Effects) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let (shell, ctx) = (self.shell, self.ctx);
        serve::attend(shell, ctx);
        let given = self.given;
        let mut ks = ServerKeyspace::new(shell, ctx, Access::Write, given);
        let mut out = shell.spare.take();
        let answer = match shell.core.try_borrow_mut() {
            Ok(mut core) => {
                let now = if waits || core.waiting() > 0 {
                    shell.now()
                } else {
                    shell.now_by_wall()
                };
                ask(&mut core, &mut ks, now, &mut out)
            }
            Err(_) => return Err(Error::busy()),
        };
        effects::write(shell, ctx, &mut ks, given, &out);
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

    /// Blocks the client until its request, which is in the queue, is settled. A
    /// client that the server does not let wait is answered as for a try.
    pub fn block(&self, waiter: WaiterId, key: &[u8]) -> Responder {
        events::watch_clients(self.shell, self.ctx);
        if blocking::block(self.shell, self.ctx, waiter, key) {
            return Responder::Later;
        }
        if let Ok(mut core) = self.shell.core.try_borrow_mut() {
            core.leave(waiter);
        }
        Responder::Null
    }
}
