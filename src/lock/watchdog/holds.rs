//! What becomes of watches as their holds begin and end.

use std::collections::BTreeSet;

use super::index::Indexed;
use crate::lock::ask::{Renewal, Want};
use crate::lock::table::{Hold, Taken, Watch};
use crate::lock::{ClientId, Core, Decision, Key, Mode, Notice, Now, Owner, WallMs};

/// Changes what is known of a hold that may be watched, and with it the indexes.
fn change(core: &mut Core, key: &Key, owner: &Owner, change: impl FnOnce(&mut Hold)) {
    let Some(hold) = core.locks.hold_mut(key, owner) else {
        return;
    };
    let was = Indexed::of(hold.watch.as_deref());
    change(hold);
    let Some(watch) = &mut hold.watch else {
        return;
    };
    if !watch.is_watched() {
        watch.rest();
    }
    let is = Indexed::of(Some(watch));
    let bond = (key.clone(), owner.clone());
    core.watchdogs.change(&bond, &was, &is);
}

/// The same for a hold that has a watch.
pub fn change_watch<T>(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    act: impl FnOnce(&mut Watch) -> T,
) -> Option<T> {
    let mut result = None;
    change(core, key, owner, |hold| {
        result = hold.watch.as_deref_mut().map(act);
    });
    result
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
        let first = hold.client.filter(|_| count == 1);
        let watch = hold.watch.get_or_insert_with(|| {
            let taken = taken(before, first, false);
            Box::new(Watch {
                taken,
                ..Watch::default()
            })
        });
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

/// So many holds in each mode, as those of one connection.
fn taken(holds: &[(Mode, i64)], client: Option<ClientId>, watched: bool) -> Vec<Taken> {
    let there = holds.iter().filter(|(_, holds)| *holds > 0);
    let taken = there.map(|(mode, holds)| Taken {
        client,
        watched,
        mode: *mode,
        holds: *holds,
    });
    taken.collect()
}

/// No renewal of a watch that begins now goes beyond this.
fn longest(core: &Core, now: Now) -> Option<WallMs> {
    core.rules.watchdog_max.map(|max| now.deadline(max))
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
        let watch = hold.watch.get_or_insert_default();
        watch.lease = renewal.lease;
        watch.bound = bound;
        watch.schedule(now);
        if client.is_some() {
            watch.taken = taken(holds, client, true);
        }
    });
}

/// A connection that watched is closed: its holds there, as they were.
pub fn on_closed(core: &mut Core, key: &Key, owner: &Owner, client: ClientId) -> Vec<(Mode, i64)> {
    let ended = change_watch(core, key, owner, |watch| {
        let its = |taken: &mut Taken| taken.watched && taken.client == Some(client);
        let ended = watch.taken.extract_if(.., its);
        ended.map(|taken| (taken.mode, taken.holds)).collect()
    });
    ended.unwrap_or_default()
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
    let clients = on_lost_with(d.core, key, hold);
    close(d, clients);
}

/// Closes connections that have lost a watchdog hold.
pub fn close(d: &mut Decision<'_>, clients: BTreeSet<ClientId>) {
    let closes = clients.into_iter();
    d.out.extend(closes.map(|client| Notice::Close { client }));
}

/// The owner's holds in this mode are lost, others of its are not.
pub fn on_lost_in(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode) {
    let clients = change_watch(d.core, key, owner, |watch| {
        let lost = watch.taken.extract_if(.., |taken| taken.mode == mode);
        let watched = lost.filter(|taken| taken.watched);
        watched.filter_map(|taken| taken.client).collect()
    });
    close(d, clients.unwrap_or_default());
}

/// The watched holds on all these keys are lost, for they go by other names now; those
/// who watched them have to know.
pub fn on_moved(d: &mut Decision<'_>, keys: impl Fn(&Key) -> bool) {
    let lost = d.core.watchdogs.forget(keys);
    close(d, lost.iter().map(|(client, _)| *client).collect());
    for (_, (key, owner)) in lost {
        let hold = d.core.locks.hold_mut(&key, &owner);
        if let Some(watch) = hold.and_then(|hold| hold.watch.as_mut()) {
            watch.rest();
        }
    }
}
