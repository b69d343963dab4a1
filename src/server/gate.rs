//! The gate: whether this server may change a lock of its own accord.
//!
//! A server that would refuse a client's write must not grant or expire either: a
//! master that is cut off would hand on a lock that its successor grants too, and
//! while writes are paused a replicated one trips an assertion.

use redis_module::raw;

use super::ffi::{api, Ctx, Text};
use super::pulse::{self, Heard};
use super::replication::errno;
use super::shell::Shell;

/// A write that changes nothing: no value is put at the start of a key that
/// nobody has. The server refuses it when it would refuse any write.
const PROBE: &[u8] = b"rlock:gate";

/// Whether locks may be granted and expired now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// The server stood still and may not have heard yet what happened meanwhile:
    /// what is due waits, for some ms as a rule.
    Waking,
    Shut,
}

/// Looks at the gate. `asked`: a client's write command is under way, so the server
/// has asked itself already, and what it accepts is done.
pub fn look(shell: &Shell, ctx: Ctx, asked: bool) -> Gate {
    if !may_write(ctx, asked) {
        return Gate::Shut;
    }
    if asked {
        return Gate::Open;
    }
    match pulse::heard(shell, ctx) {
        Heard::Yes => Gate::Open,
        Heard::NotYet => Gate::Waking,
        Heard::Nothing => Gate::Shut,
    }
}

/// Whether the server would let a client write, as far as it knows.
fn may_write(ctx: Ctx, asked: bool) -> bool {
    let flags = ctx.flags();
    let set = |flag: u32| flags & flag as i32 != 0;
    if !set(raw::REDISMODULE_CTX_FLAGS_MASTER)
        || set(raw::REDISMODULE_CTX_FLAGS_LOADING)
        || set(raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING)
    {
        return false;
    }
    if asked {
        // Paused or not: a write that runs in a pause stands in the MULTI that began it.
        return true;
    }
    // CLIENT PAUSE, FAILOVER, a shutdown or a slot migration under way.
    let paused = api!(RedisModule_AvoidReplicaTraffic()).unwrap_or(0) != 0;
    !paused && would_write(ctx)
}

/// Whether the server would run a client's write: enough replicas
/// (min-replicas-to-write), no disk error (MISCONF).
fn would_write(ctx: Ctx) -> bool {
    let Some(name) = Text::new(PROBE) else {
        return false;
    };
    // SAFETY: set at load.
    let Some(call) = (unsafe { raw::RedisModule_Call }) else {
        return false;
    };
    errno::clear();
    let zero: std::ffi::c_longlong = 0;
    // `S`: as for a script, with all checks that a client's write goes through.
    // `E`: errors as replies, for Valkey 9.1 crashes on a refusal without it.
    // SAFETY: the arguments are of the kinds that the format names.
    let reply = unsafe {
        call(
            ctx.0,
            c"SETRANGE".as_ptr(),
            c"SEslc".as_ptr(),
            name.as_ptr(),
            zero,
            c"".as_ptr(),
        )
    };
    let why = errno::get();
    // Refused, but not for a reason of ours: another node of the cluster has that
    // key, and the other checks came first; or it ran, and somebody has such a key.
    !is_error(reply) || matches!(why, 0 | libc::EPERM)
}

/// Whether a call was refused or failed; frees its reply.
fn is_error(reply: *mut raw::RedisModuleCallReply) -> bool {
    if reply.is_null() {
        return true;
    }
    let kind = api!(RedisModule_CallReplyType(reply));
    api!(RedisModule_FreeCallReply(reply));
    kind == Some(raw::REDISMODULE_REPLY_ERROR as i32)
}
