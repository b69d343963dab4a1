//! Tells the core who waits by subscription, and looks after the turns they have.

use super::effects;
use super::ffi::{Ctx, Given};
use super::keyspace::{Access, ServerKeyspace};
use super::publish;
use super::shell::Shell;
use crate::config;
use crate::lock::{self, Effects, Key, Listening};

/// Notes what was found out about those who wait by subscription, if anything was.
pub fn heard(shell: &Shell, key: &Key, listening: Option<Listening>) {
    if let (Some(listening), Ok(mut heard)) = (listening, shell.heard.try_borrow_mut()) {
        heard.push((key.clone(), listening));
    }
}

/// Lets the core know of it. Only when all else is done: a request of this very
/// command that is to wait can be granted by it, and must be blocked by then. A
/// command, or the timer, with the gate open. Whether there was anything.
pub fn attend(shell: &'static Shell, ctx: Ctx) -> bool {
    let mut any = false;
    loop {
        let heard = shell.heard.try_borrow_mut();
        let heard = heard.map_or_else(|_| Vec::new(), |mut heard| std::mem::take(&mut *heard));
        if heard.is_empty() {
            return any;
        }
        any = true;
        for (key, listening) in heard {
            hear(shell, ctx, &key, listening);
        }
    }
}

fn hear(shell: &'static Shell, ctx: Ctx, key: &Key, listening: Listening) {
    let mut told = Effects::new();
    let mut ks = ServerKeyspace::new(shell, ctx, Access::Write, Given::default());
    if let Ok(mut core) = shell.core.try_borrow_mut() {
        core.rules = config::rules();
        lock::decide(&mut core, &mut ks, shell.now(), &mut told, |d| {
            lock::subscribed(d, key, listening);
        });
    }
    ks.close();
    effects::tell(shell, ctx, Given::default(), &mut told);
}

/// Looks at turns that are due for it, and that are on keys of this node.
pub fn look(shell: &Shell, ctx: Ctx, due: Vec<(Key, bool)>) {
    for (key, shared) in due {
        let listening = publish::listening(shell, ctx, &key, shared);
        heard(shell, &key, Some(listening.unwrap_or(Listening::Nobody)));
    }
}
