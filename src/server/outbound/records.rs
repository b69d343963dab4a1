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
//!   before the AOF was switched on. There are events of forks, and of changed settings.
//!   (From the replica's request to the fork there is a backlog already, for seconds
//!   perhaps, or for as long as no other replica comes if that one goes before; nobody
//!   ever reads it up to there.)
//! - SAVE, which forks nothing, writes down where in such a backlog it was made, and a
//!   replica that begins with its file reads on from there. There are events of saves.
//! - A backlog can come with a load, or be left from having been a replica. There are events
//!   of loads and of changed roles.
//! - In a cluster of Valkey a slot that moves is a record too, of which there is no event:
//!   there the answer is always yes.

use std::ffi::CStr;

use redis_module::ContextFlags;

use crate::server::shell::ServerShell;
use crate::server::sys::{Ctx, ServerInfo};

/// Whether writes of a client's command are to be replicated.
pub fn are_kept(shell: &ServerShell, ctx: Ctx<'_>) -> bool {
    let records = &shell.situation.records;
    records.get().unwrap_or_else(|| {
        let kept = ask(shell, ctx);
        records.set(Some(kept));
        kept
    })
}

fn ask(shell: &ServerShell, ctx: Ctx<'_>) -> bool {
    let always = shell.server.cluster || shell.situation.loading.get();
    if always || ctx.flags().contains(ContextFlags::AOF) {
        return true;
    }
    let fields = [c"connected_slaves", c"repl_backlog_active"];
    fields.iter().any(|field| number(ctx, field) != Some(0))
}

/// Whether replicas are attached.
pub fn has_replicas(ctx: Ctx<'_>) -> bool {
    number(ctx, c"connected_slaves") != Some(0)
}

/// A number in INFO replication.
fn number(ctx: Ctx<'_>, field: &CStr) -> Option<i64> {
    ServerInfo::section(ctx, c"replication")?.number(field)
}
