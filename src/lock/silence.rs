//! A connection that says that it is alive (HEARTBEAT), and was not heard of for longer than it may
//! be silent, loses what it watches, while somebody waits for that.
//!
//! A lease that its owner has asked for is not shortened by it: what is taken back is what the
//! watchdog has added. Nor is anything taken that nobody waits for.

use std::collections::BTreeMap;

use super::head::{self, Next};
use super::table::{Entry, Taken};
use super::watchdog::{self, Bond, Why};
use super::{leaving, reconcile, request};
use super::{ClientId, Core, Decision, Key, Mode, Now, Owner, Reason};

/// So many holders of a lock are looked at for those who subscribe.
const MOST_HOLDERS: usize = 128;

/// The program behind a connection is alive, and may be silent for so many ms.
pub fn heartbeat(core: &mut Core, client: ClientId, patience: i64, now: Now) {
    core.heartbeats.heard(client, patience, now);
}

/// What is bound next to those who are silent, some at a time.
pub fn next(core: &mut Core, now: Now, most: usize) -> Vec<(ClientId, Bond)> {
    let queues = &core.queues;
    let is_blocked = |client| queues.of_client(client).next().is_some();
    core.heartbeats
        .go_on(&core.watchdogs, now, most, is_blocked)
}

/// Whether what a connection watches there of an owner's holds may end: it is silent, and the lease
/// that was asked for is over.
pub fn may_end(core: &Core, now: Now, client: ClientId, key: &Key, owner: &Owner) -> bool {
    let hold = core.locks.hold(key, owner);
    let watch = hold.and_then(|hold| hold.watch.as_ref());
    let its = |taken: &Taken| taken.watcher() == Some(client);
    // As long as nothing is granted, nobody has anything of it.
    core.rules.grants_in.is_none()
        && core.heartbeats.is_silent(client)
        && watch.is_some_and(|w| w.asked < now.wall_ms() && w.taken.iter().any(its))
}

/// Somebody waits for a lock by subscription. If nobody stands before them, what those who are
/// silent watch there ends.
pub fn for_subscribers(d: &mut Decision<'_>, key: &Key) {
    if d.core.heartbeats.is_empty() || head::next(d.core, key) != Some(Next::Subscribers) {
        return;
    }
    let holds = d.core.locks.get(key).into_iter().flat_map(Entry::holds);
    let holds = holds.take(MOST_HOLDERS);
    let watched = holds.filter_map(|hold| Some((hold.owner.clone(), hold.watch.as_ref()?)));
    let bonds = watched.flat_map(|(owner, watch)| {
        let clients: Vec<ClientId> = watch.taken.clients().collect();
        let bond = move |client| (client, owner.clone());
        clients.into_iter().map(bond)
    });
    for (client, owner) in bonds.collect::<Vec<_>>() {
        end(d, client, key, &owner);
    }
}

/// What a silent connection watches there of an owner's holds ends, as with its close, if somebody
/// waits still.
pub fn end(d: &mut Decision<'_>, client: ClientId, key: &Key, owner: &Owner) {
    reconcile::end_first(d, key, owner);
    let look = reconcile::read(d, key, owner);
    if !may_end(d.core, d.now, client, key, owner) || !keeps_out(d, key, owner) {
        return;
    }
    d.core.in_flight.forget_watched(client, key);
    let mut holds = BTreeMap::new();
    let unbound = watchdog::unbind_some(d.core, key, owner, |watch, changed| {
        holds = watch.take_from(client, changed);
    });
    let ended: Vec<(Mode, i64)> = holds.into_iter().collect();
    request::end_holds(d, key, owner, look, &ended);
    watchdog::tell(d, key, owner, unbound, Why::lost(Reason::Silent));
}

/// Whether an owner keeps out somebody who would get to know of a grant: who would not is nobody,
/// and its wait ends, as at its turn.
fn keeps_out(d: &mut Decision<'_>, key: &Key, owner: &Owner) -> bool {
    while head::keeps_out(d.core, key, owner) {
        let Some(Next::Waiter(id)) = head::next(d.core, key) else {
            return true;
        };
        let waiter = d.core.queues.get(id);
        if waiter.is_none_or(|waiter| waiter.would_hear(d.ks)) {
            return true;
        }
        leaving::give_up(d.core, &mut d.work, id);
    }
    false
}
