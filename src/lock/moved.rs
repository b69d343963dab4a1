//! Keys that move, alone (RENAME, MOVE) or with their whole database (SWAPDB,
//! flushes). What is known of a hold goes with the key; a queue stays where its
//! clients asked, at (db, name), and is looked at again. A watchdog does not
//! follow: its connection is closed, for it would renew another name.

use super::key::exchanged;
use super::table::Hold;
use super::{reconcile, watchdog};
use super::{ClientId, Core, Decision, Key, Owner};

/// The server is no master any more: what it knew of holds is out of date as
/// soon as its new master writes. Waiters are sent away by the server. The
/// connections that have lost watchdog holds by it.
pub fn demoted(core: &mut Core) -> Vec<ClientId> {
    let clients = core.watchdogs.clients();
    for key in core.locks.keys() {
        core.locks.forget_holders(&key);
    }
    core.watchdogs = Default::default();
    // The server sends the waiters away; what they were granted is void.
    core.in_flight = Default::default();
    core.subscribers = Default::default();
    core.heard = Default::default();
    core.due = Default::default();
    core.away = Default::default();
    clients
}

/// The key was renamed or moved to another database: its hold goes with it,
/// and what was known of the key it replaced is void. The leases of readers do
/// not move. Both keys are due for `run::review`.
pub fn renamed(d: &mut Decision<'_>, from: &Key, to: &Key) {
    reconcile::drop_holders(d, to);
    d.core
        .in_flight
        .rename(|key| if key == from { to.clone() } else { key.clone() });
    let holders = d.core.locks.take_holders(from);
    if let Some(mut hold) = holders.plain {
        let_rest(d, from, &mut hold);
        d.core.locks.set_plain(to, hold);
    }
    let Some(mut shared) = holders.shared else {
        d.core.locks.set_deadline(to, holders.deadline);
        return;
    };
    let owners = shared.parties().map(|party| party.hold.owner.clone());
    for owner in owners.collect::<Vec<Owner>>() {
        shared.change(&owner, |party| {
            let_rest(d, from, &mut party.hold);
            party.stop_reading();
        });
    }
    if !shared.is_empty() {
        d.core.locks.change_shared(to, |known| *known = *shared);
    }
}

/// Two databases were exchanged. All keys of both are due for `run::review`.
pub fn swapped(d: &mut Decision<'_>, one: i32, other: i32) {
    if one == other {
        return;
    }
    d.core.in_flight.rename(|key| Key {
        db: exchanged(key.db, one, other),
        name: key.name.clone(),
    });
    let is_theirs = |key: &Key| key.db == one || key.db == other;
    watchdog::on_moved(d, is_theirs);
    let waited_for = d.core.queues.keys().filter(|key| is_theirs(key));
    let waited_for: Vec<Key> = waited_for.cloned().collect();
    for key in &waited_for {
        d.core.locks.set_waited_for(key, false);
    }
    d.core.locks.swap(one, other);
    for key in &waited_for {
        d.core.locks.set_waited_for(key, true);
    }
}

/// A watched hold moves: who watched it has lost it.
fn let_rest(d: &mut Decision<'_>, key: &Key, hold: &mut Hold) {
    watchdog::on_lost(d, key, hold);
    if let Some(watch) = &mut hold.watch {
        watch.rest();
    }
}
