//! One decision of the core on the server's keyspace: it decides and writes, and then its
//! notices are sent.

use super::keyspace::{Caller, ServerKeyspace};
use crate::config;
use crate::lock::{self, Core, Decider, Notices, Now};
use crate::server::outbound::notices::{self, ListenersFound};
use crate::server::outbound::replication::Replication;
use crate::server::state::clock;
use crate::server::sys::Access;

/// Room for so many notices is kept for the next decision.
const MOST_SPARE: usize = 256;

/// Has the core decide, once or more often, and then sends its notices. `None`: it is
/// deciding already, and we are in the middle of that. `waits`: both clocks are needed, even
/// where nobody waits yet.
pub fn decide<T>(
    caller: &Caller<'_>,
    waits: bool,
    run: impl FnOnce(&mut Decider<'_>) -> T,
) -> Option<(T, ListenersFound)> {
    let shell = caller.to.shell;
    lend(caller, |core, ks, out| {
        core.rules = config::rules(shell.emits_events(), shell.observes_all(), clock::age_ms);
        let now = if waits { clock::now() } else { now_for(core) };
        run(&mut Decider { core, ks, now, out })
    })
}

/// Lends the core and the keyspace, and then sends the notices. `None`: they are lent already.
pub fn lend<T>(
    caller: &Caller<'_>,
    run: impl FnOnce(&mut Core, &mut ServerKeyspace<'_>, &mut Notices) -> T,
) -> Option<(T, ListenersFound)> {
    let shell = caller.to.shell;
    let mut ks = ServerKeyspace::new(caller, Access::Write);
    let mut out = shell.core.spare.take();
    let answer = shell.core.change(|core| run(core, &mut ks, &mut out))?;
    drop(ks);
    let found = notices::send(&caller.to, caller.given, &mut out);
    // Room for very many is given back.
    if out.capacity() <= MOST_SPARE {
        shell.core.spare.set(out);
    }
    Some((answer, found))
}

/// The clocks that a decision needs, of which no request comes to wait.
pub fn now_for(core: &Core) -> Now {
    match core.waiting() > 0 || core.has_places() {
        true => clock::now(),
        false => clock::now_by_wall(),
    }
}

/// Lets the core know who waits by subscription. Only when all else is done: a request of
/// this very command that is to wait can be granted by it, and must be blocked by then. A
/// command, or the timer, with the gate open.
pub fn attend(to: Replication<'_>, mut found: ListenersFound) {
    let caller = Caller::without_command(to);
    while !found.is_empty() {
        let decided = decide(&caller, true, |with| lock::attend(with, found));
        found = decided.map(|((), more)| more).unwrap_or_default();
    }
}
