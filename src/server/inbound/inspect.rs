//! Commands that look and change nothing.

use super::tick;
use crate::lock::{self, Cause, Core, Key, Note, Now};
use crate::server::run::{Caller, ServerKeyspace};
use crate::server::state::clock;
use crate::server::sys::Access;

/// Looks at what is known and at the keyspace. `None`: the core is deciding.
pub fn inspect<'a, T>(
    caller: &Caller<'a>,
    look: impl FnOnce(&Core, &mut ServerKeyspace<'a>, Now) -> T,
) -> Option<T> {
    let (shell, now) = (caller.to.shell, clock::now());
    shell.core.change(|core| lock::let_all_leave(core, now));
    let mut ks = ServerKeyspace::new(caller, Access::Read);
    let seen = shell.core.ask(|core| look(core, &mut ks, now))?;
    are_gone(caller, ks.missed());
    Some(seen)
}

/// These keys are not there. Where one was a lock, nobody observed that it went: that is
/// news.
fn are_gone(caller: &Caller<'_>, mut keys: Vec<Key>) {
    let (shell, ctx) = (caller.to.shell, caller.to.ctx);
    let is_known = |core: &Core| keys.retain(|key| core.knows(key.db, &key.name));
    shell.core.ask(is_known);
    if !keys.is_empty() && shell.listens() && !shell.own_work.is_any() {
        let notes = keys
            .into_iter()
            .map(|key| Note::Changed(key, Cause::Unknown));
        tick::leave(shell, ctx, notes);
    }
}
