//! Commands that look and change nothing.

use super::tick;
use crate::lock::{self, Cause, Core, Key, Note, Now};
use crate::server::run::{Asked, ServerKeyspace};
use crate::server::state::clock;
use crate::server::sys::Access;

/// Looks at what is known and at the keyspace. `None`: the core is deciding.
pub fn inspect<'a, T>(
    asked: &Asked<'a>,
    look: impl FnOnce(&Core, &mut ServerKeyspace<'a>, Now) -> T,
) -> Option<T> {
    let (shell, now) = (asked.to.shell, clock::now());
    shell.locks.change(|core| lock::let_all_leave(core, now));
    let mut ks = ServerKeyspace::new(asked, Access::Read);
    let seen = shell.locks.ask(|core| look(core, &mut ks, now))?;
    are_gone(asked, ks.missed());
    Some(seen)
}

/// These keys are not there. Of a lock that went unheard that is news.
fn are_gone(asked: &Asked<'_>, mut keys: Vec<Key>) {
    let (shell, ctx) = (asked.to.shell, asked.to.ctx);
    let is_known = |core: &Core| keys.retain(|key| core.knows(key.db, &key.name));
    shell.locks.ask(is_known);
    if !keys.is_empty() && shell.listens() && !shell.own_work.is_any() {
        let notes = keys
            .into_iter()
            .map(|key| Note::Changed(key, Cause::Unknown));
        tick::leave(shell, ctx, notes);
    }
}
