//! What becomes of watches as their holds begin and end.

use std::collections::BTreeSet;

use super::index::Indexed;
use crate::lock::ask::{Renewal, Want};
use crate::lock::table::{Entry, Hold, Taken, Watch};
use crate::lock::{ClientId, Core, Decision, Key, Mode, Notice, Now, Owner, WallMs};

/// Changes what is known of a hold that may be watched, and with it the indexes.
fn change<T>(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    change: impl FnOnce(&mut Hold) -> T,
) -> Option<T> {
    let hold = core.locks.hold_mut(key, owner)?;
    let was = Indexed::of(hold.watch.as_deref());
    let result = change(hold);
    let Some(watch) = &mut hold.watch else {
        return Some(result);
    };
    if !watch.is_watched() {
        watch.rest();
    }
    let is = Indexed::of(Some(watch));
    let bond = (key.clone(), owner.clone());
    core.watchdogs.change(&bond, &was, &is);
    Some(result)
}

/// The same for a hold that has a watch.
fn change_watch(core: &mut Core, key: &Key, owner: &Owner, act: impl FnOnce(&mut Watch)) {
    change(core, key, owner, |hold| hold.watch.as_deref_mut().map(act));
}

/// An owner has the hold that it wanted. `before`: how many it had in each mode.
pub fn on_acquired(core: &mut Core, key: &Key, want: &Want, before: &[(Mode, i64)], now: Now) {
    let owner = &want.owner;
    let holds = before.iter().map(|(_, holds)| *holds);
    let count = holds.fold(0_i64, i64::saturating_add);
    if count == 0 && !want.watch {
        if let Some(hold) = core.locks.hold_mut(key, owner) {
            hold.client = want.client;
        }
        return;
    }
    let bound = longest(core, now);
    let end = core.locks.lease_end(key, owner);
    change(core, key, owner, |hold| {
        let first = if count == 1 { hold.client } else { None };
        let found = |(mode, holds): &(Mode, i64)| Taken {
            client: first,
            watched: false,
            mode: *mode,
            holds: *holds,
        };
        let there = before.iter().filter(|(_, holds)| *holds > 0);
        let new = || Box::new(Watch::of(there.map(found).collect()));
        let watch = hold.watch.get_or_insert_with(new);
        watch.add(Taken {
            client: want.client,
            watched: want.watch,
            mode: want.mode,
            holds: 1,
        });
        if !want.watch {
            return;
        }
        let due = watch.next;
        watch.lease = watch.lease.max(want.lease);
        watch.bound = bound;
        watch.schedule(now);
        // Not later than it was due, and before the present end: the lease may not
        // have been lengthened.
        let left = end.map(|at| at.ms_from(now.wall_ms()) / 3);
        let in_time = left.map(|ms| now.deadline(ms));
        watch.next = [due, watch.next, in_time].into_iter().flatten().min();
    });
}

/// No renewal of a watch that begins now goes beyond this.
fn longest(core: &Core, now: Now) -> Option<WallMs> {
    core.rules.watchdog_max.map(|max| now.deadline(max))
}

/// An owner has one hold less in this mode, which this connection gave up.
pub fn on_one_released(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    mode: Mode,
    by: Option<ClientId>,
) {
    change_watch(core, key, owner, |watch| watch.drop_one(mode, by));
}

/// An owner has no holds in this mode any more.
pub fn on_all_released(core: &mut Core, key: &Key, owner: &Owner, mode: Mode) {
    change_watch(core, key, owner, |watch| watch.drop_all(mode));
}

/// The lease of a watched hold was set by hand of its owner: that is the watchdog's
/// lease from now on. The renewal may bind all the owner's holds here to a connection.
pub fn on_renewed(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    holds: &[(Mode, i64)],
    renewal: &Renewal<'_>,
    now: Now,
) {
    let (bound, client) = (longest(core, now), renewal.watch);
    change(core, key, owner, |hold| {
        let is_watched = hold.watch.as_ref().is_some_and(|watch| watch.is_watched());
        if client.is_none() && !is_watched {
            return;
        }
        let new = || Box::new(Watch::of(Vec::new()));
        let watch = hold.watch.get_or_insert_with(new);
        watch.lease = renewal.lease;
        watch.bound = bound;
        watch.schedule(now);
        if client.is_some() {
            let there = holds.iter().filter(|(_, holds)| *holds > 0);
            let taken = there.map(|(mode, holds)| Taken {
                client,
                watched: true,
                mode: *mode,
                holds: *holds,
            });
            watch.taken = taken.collect();
        }
    });
}

/// Sets when a watch is renewed next.
pub fn reschedule(core: &mut Core, key: &Key, owner: &Owner, set: impl FnOnce(&mut Watch)) {
    change_watch(core, key, owner, set);
}

/// A connection that watched is closed: its holds there, as they were.
pub fn on_closed(core: &mut Core, key: &Key, owner: &Owner, client: ClientId) -> Vec<(Mode, i64)> {
    let mut its = Vec::new();
    change_watch(core, key, owner, |watch| {
        watch.taken.retain(|taken| {
            let ends = taken.watched && taken.client == Some(client);
            if ends {
                its.push((taken.mode, taken.holds));
            }
            !ends
        });
    });
    its
}

/// What was known of a hold that is no more: the connections that watched it.
pub fn on_lost_with(core: &mut Core, key: &Key, hold: &Hold) -> BTreeSet<ClientId> {
    let Some(watch) = &hold.watch else {
        return BTreeSet::new();
    };
    let was = Indexed::of(Some(watch));
    let bond = (key.clone(), hold.owner.clone());
    core.watchdogs.change(&bond, &was, &Indexed::default());
    was.clients
}

/// A hold is lost: those who watched it have to know.
pub fn on_lost(d: &mut Decision<'_>, key: &Key, hold: &Hold) {
    for client in on_lost_with(d.core, key, hold) {
        d.out.push(Notice::Close { client });
    }
}

/// The owner's holds in this mode are lost, others of its are not.
pub fn on_lost_in(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode) {
    let held = d.core.locks.hold(key, owner);
    let watch = held.and_then(|hold| hold.watch.as_ref());
    let taken = watch.iter().flat_map(|watch| &watch.taken);
    let lost = taken.filter(|taken| taken.watched && taken.mode == mode);
    let clients: BTreeSet<ClientId> = lost.filter_map(|taken| taken.client).collect();
    on_all_released(d.core, key, owner, mode);
    for client in clients {
        d.out.push(Notice::Close { client });
    }
}

/// The watched holds on all these keys are lost, for they go by other names now; those
/// who watched them have to know.
pub fn on_moved(d: &mut Decision<'_>, keys: impl Fn(&Key) -> bool) {
    let (lost, clients) = d.core.watchdogs.forget(keys);
    let closes = clients.into_iter().map(|client| Notice::Close { client });
    d.out.extend(closes);
    for (key, owner) in lost {
        let hold = d.core.locks.hold_mut(&key, &owner);
        if let Some(watch) = hold.and_then(|hold| hold.watch.as_mut()) {
            watch.rest();
        }
    }
}

/// The owners whose holds on a lock have a watch.
pub fn watched_on(core: &Core, key: &Key) -> Vec<Owner> {
    let holds = core.locks.get(key).into_iter().flat_map(Entry::holds);
    let watched = holds.filter(|hold| hold.watch.is_some());
    watched.map(|hold| hold.owner.clone()).collect()
}
