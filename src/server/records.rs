//! Whether anybody keeps a record of what is written: the AOF, a replica, or the
//! backlog for one that may come back.
//!
//! Where nobody does, the server throws away what it is given to replicate, but only
//! after it has looked the command up and copied its arguments: a fifth of what an
//! uncontended lock costs. So it is asked who does, and asked anew after each event
//! that can change the answer. An answer "nobody" is never out of date:
//!
//! - A server that has no backlog sends its first replica everything, by a child that
//!   it forks; what was written before the fork is in that. So is what was written
//!   before the AOF was switched on. Forks are told of, and so are changed settings.
//!   (From the replica's request to the fork there is a backlog already, for seconds
//!   perhaps, or for as long as no other replica comes if that one goes before; nobody
//!   ever reads it up to there.)
//! - SAVE, which forks nothing, writes down where in such a backlog it was made, and a
//!   replica that begins with its file reads on from there. Saves are told of.
//! - A backlog can come with a load, or be left from having been a replica. Loads and
//!   changes of role are told of.
//! - In a cluster of Valkey a slot that moves is a record too, and nothing tells of it:
//!   there the answer is always yes.

use std::ffi::{c_int, CStr};

use redis_module::raw;

use super::ffi::{api, Ctx};
use super::shell::{shell, Shell};

/// Whether writes are to be replicated. Those of the timer are in any case: no client's
/// command could stand for them.
pub fn are_kept(ctx: Ctx) -> bool {
    let Some(shell) = shell().filter(|shell| shell.in_command.get()) else {
        return true;
    };
    match shell.records.get() {
        Some(kept) => kept,
        None => {
            let kept = ask(shell, ctx);
            shell.records.set(Some(kept));
            kept
        }
    }
}

/// Something happened that can change the answer.
pub fn doubt(shell: &Shell) {
    shell.records.set(None);
}

/// In place of replicating a write: lets the server count it as one, for its save
/// points. It takes the client's command for what is to be replicated, and throws that
/// away. `None`: it does not know how.
pub fn count_a_write(ctx: Ctx) -> Option<()> {
    api!(RedisModule_ReplicateVerbatim(ctx.0)).map(|_| ())
}

fn ask(shell: &Shell, ctx: Ctx) -> bool {
    let aof = ctx.flags() & raw::REDISMODULE_CTX_FLAGS_AOF as i32 != 0;
    if shell.server.cluster || shell.loading.get() || aof {
        return true;
    }
    let fields = [c"connected_slaves", c"repl_backlog_active"];
    fields.iter().any(|field| number(ctx, field) != Some(0))
}

/// Whether replicas are attached.
pub fn has_replicas(ctx: Ctx) -> bool {
    number(ctx, c"connected_slaves") != Some(0)
}

/// A number in INFO replication.
fn number(ctx: Ctx, field: &CStr) -> Option<i64> {
    let info = api!(RedisModule_GetServerInfo(ctx.0, c"replication".as_ptr()))?;
    let mut err = raw::REDISMODULE_OK as c_int;
    let number = api!(RedisModule_ServerInfoGetFieldSigned(
        info,
        field.as_ptr(),
        &raw mut err
    ));
    api!(RedisModule_FreeServerInfo(ctx.0, info));
    number.filter(|_| err == raw::REDISMODULE_OK as c_int)
}
