//! Tells the core who waits by subscription, and looks after the turns they have.

use super::effects;
use super::ffi::{Ctx, Given};
use super::keyspace::{Access, ServerKeyspace};
use super::publish;
use super::shell::Shell;
use crate::config;
use crate::lock::{Effects, Key, Listening, Step};

/// Lets the core know what was found out about those who wait by subscription. A
/// command, or the timer, with the gate open.
pub fn hear(shell: &'static Shell, ctx: Ctx, key: &Key, listening: Listening) {
    let mut told = Effects::new();
    let mut ks = ServerKeyspace::new(shell, ctx, Access::Write, Given::default());
    if let Ok(mut core) = shell.core.try_borrow_mut() {
        core.rules = config::rules();
        let mut step = Step {
            ks: &mut ks,
            now: shell.now(),
            out: &mut told,
        };
        core.subscribed(&mut step, key, listening);
    }
    ks.close();
    effects::tell(shell, ctx, Given::default(), &mut told);
}

/// Looks at turns that are due for it, and that are on keys of this node.
pub fn look(shell: &'static Shell, ctx: Ctx, due: Vec<(Key, bool)>) {
    for (key, shared) in due {
        let listening = publish::listening(shell, ctx, &key, shared);
        hear(shell, ctx, &key, listening.unwrap_or(Listening::Nobody));
    }
}
