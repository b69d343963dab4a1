//! One decision of the core on the server's keyspace: it decides and writes, and then
//! others are told.

use super::keyspace::{Asked, ServerKeyspace};
use crate::config;
use crate::lock::{self, Decider};
use crate::server::outbound::replication::Replication;
use crate::server::outbound::tell::{tell, Found};
use crate::server::state::clock;
use crate::server::sys::Access;

/// Room for so many notices is kept for the next decision.
const MOST_SPARE: usize = 256;

/// Has the core decide, once or more often, and then tells what it decided. `None`: it is
/// deciding already, and we are in the middle of that. `waits`: both clocks are needed, even
/// where nobody waits yet.
pub fn decide<T>(
    asked: &Asked<'_>,
    waits: bool,
    run: impl FnOnce(&mut Decider<'_>) -> T,
) -> Option<(T, Found)> {
    let shell = asked.to.shell;
    let mut ks = ServerKeyspace::new(asked, Access::Write);
    let mut told = shell.locks.spare.take();
    let answer = shell.locks.change(|core| {
        core.rules = config::rules(shell.is_heard(), shell.hears_all(), clock::age_ms);
        let now = if waits || core.waiting() > 0 || core.has_places() {
            clock::now()
        } else {
            clock::now_by_wall()
        };
        run(&mut Decider {
            core,
            ks: &mut ks,
            now,
            out: &mut told,
        })
    })?;
    drop(ks);
    let found = tell(&asked.to, asked.given, &mut told);
    // What very many took is given back.
    if told.capacity() <= MOST_SPARE {
        shell.locks.spare.set(told);
    }
    Some((answer, found))
}

/// Lets the core know who waits by subscription. Only when all else is done: a request of
/// this very command that is to wait can be granted by it, and must be blocked by then. A
/// command, or the timer, with the gate open.
pub fn attend(to: Replication<'_>, mut found: Found) {
    let asked = Asked::without_command(to);
    while !found.is_empty() {
        let heard = decide(&asked, true, |with| lock::attend(with, found));
        found = heard.map(|((), more)| more).unwrap_or_default();
    }
}
