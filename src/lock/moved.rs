//! Keys that move, alone (RENAME, MOVE) or with their whole database (SWAPDB,
//! flushes). What is known of a hold goes with the key; a queue stays where its
//! clients asked, at (db, name), and is looked at again. A watchdog does not
//! follow: its connection is closed, for it would renew another name.

use super::key::exchanged;
use super::pools::Seen;
use super::table::SharedKind;
use super::{leaving, reconcile, watchdog};
use super::{Core, Decision, Key, Owner, Reason};

/// The server is no master any more: what it knew of holds is out of date as
/// soon as its new master writes. The timer tells who is to know of it, some at a time.
pub fn demoted(core: &mut Core) {
    core.heard.void(&mut core.locks);
    // The server sends blocked clients away; what they were granted is void.
    core.queues.send_all_away();
    core.locks.end_unwritten();
    core.in_flight = Default::default();
    core.subscribers = Default::default();
    core.due = Default::default();
    core.inquiry = Default::default();
    core.away = Default::default();
    core.pools = Default::default();
}

/// The key was renamed or moved to another database: its hold goes with it,
/// and what was known of the key it replaced is void. The leases of readers do
/// not move, those of permits do. Both keys are due for `run::review`.
pub fn renamed(d: &mut Decision<'_>, from: &Key, to: &Key) {
    reconcile::drop_holders(d, to, Reason::Overwritten);
    d.core
        .in_flight
        .rename(|key| if key == from { to.clone() } else { key.clone() });
    d.core.tokens.moved(from, to);
    d.core.pools.forget(to);
    let name = |key: &Key| if key == from { to } else { key }.clone();
    d.core.pools.rename(name);
    let shared = d.core.locks.shared(from);
    let alike = shared.filter(|shared| shared.are_many() && shared.writer().is_none());
    if let Some(kind) = alike.map(|shared| shared.kind) {
        reconcile::drop_holders(d, from, Reason::Moved);
        match kind {
            // Who has some is read anew.
            SharedKind::Permits(pool) => d.core.pools.begin(to, Seen::Out(pool)),
            // Their leases stay behind, and with these their holds.
            SharedKind::ReadWrite => {}
        }
        return;
    }
    d.all_parted(from);
    let holders = d.core.locks.take_holders(from);
    if let Some(whom) = holders.presumed {
        let found = holders.deadline.map(|at| (whom, at));
        d.core.locks.set_presumed(to, found);
        return;
    }
    if let Some(mut hold) = holders.plain {
        watchdog::let_rest(d, from, &mut hold);
        d.core.locks.set_plain(to, hold, holders.deadline);
    }
    let Some(mut shared) = holders.shared else {
        d.core.locks.set_deadline(to, holders.deadline);
        return;
    };
    let owners = shared.holds().map(|hold| hold.owner.clone());
    for owner in owners.collect::<Vec<Owner>>() {
        let gone = shared.change(&owner, |hold| {
            watchdog::let_rest(d, from, hold);
            if hold.reads {
                hold.stop_reading();
            }
            hold.waits = false;
        });
        if let Some(hold) = gone {
            d.core.locks.is_over(&hold);
        }
    }
    if !shared.is_empty() {
        d.core.locks.set_shared(to, *shared);
        leaving::know_who_waits(d.core, to);
    }
}

/// Two databases were exchanged. All keys of both are due for `run::review`, and who waits for
/// them is known of them then.
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
    for key in waited_for.cloned().collect::<Vec<Key>>() {
        d.all_parted(&key);
    }
    d.core.locks.swap(one, other);
    d.core.pools.rename(|key| Key {
        db: exchanged(key.db, one, other),
        name: key.name.clone(),
    });
}
