//! What becomes of watches as their holds begin and end.

use std::collections::BTreeSet;

use super::index::{Bond, Indexed};
use crate::lock::ask::{Binding, Renewal, Want};
use crate::lock::counters::Counters;
use crate::lock::table::{Changed, Hold, Taken, Watch};
use crate::lock::{
    ClientId, Core, Decision, Key, Loss, Mode, Notice, Notices, Now, Owner, Reason, WallMs,
};

/// Changes what is known of a hold that may be watched, and with it the indexes.
fn change(core: &mut Core, key: &Key, owner: &Owner, change: impl FnOnce(&mut Hold)) {
    let changed = core.locks.change_hold(key, owner, |hold| {
        let was = Indexed::of(hold.watch.as_deref());
        change(hold);
        let watch = hold.watch.as_mut()?;
        if !watch.is_watched() {
            watch.rest();
        }
        Some((was, Indexed::of(Some(watch))))
    });
    if let Some((was, is)) = changed.flatten() {
        index(core, &(key.clone(), owner.clone()), &was, &is);
    }
}

/// The same where holds begin or end one by one: what has not changed is not gone through to
/// find what has, for there may be very many.
fn change_few<T>(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    change: impl FnOnce(&mut Hold, &mut Changed) -> T,
) -> Option<T> {
    let (result, changed, bound, next) = core.locks.change_hold(key, owner, |hold| {
        let was = hold.watch.as_ref().and_then(|watch| watch.next);
        let mut changed = Changed::default();
        let result = change(hold, &mut changed);
        let Some(watch) = hold.watch.as_mut() else {
            return (result, changed, Vec::new(), (None, None));
        };
        if !watch.is_watched() {
            watch.rest();
        }
        let bound = watch.bound_by(&changed);
        (result, changed, bound, (was, watch.next))
    })?;
    let bond = (key.clone(), owner.clone());
    core.watchdogs
        .change_few(&bond, next, changed.watched, &bound);
    let (begun, ended) = (changed.begun.iter(), changed.ended.iter());
    for address in begun.filter_map(|taken| taken.notify.as_ref()) {
        core.sessions.add_hold(address);
    }
    for address in ended.filter_map(|taken| taken.notify.as_ref()) {
        core.sessions.remove_hold(address);
    }
    Some(result)
}

/// What is known of a watch was this, and is that now.
fn index(core: &mut Core, bond: &Bond, was: &Indexed, is: &Indexed) {
    core.watchdogs.change(bond, was, is);
    if was.addresses != is.addresses {
        is.addresses
            .iter()
            .for_each(|one| core.sessions.add_hold(one));
        was.addresses
            .iter()
            .for_each(|one| core.sessions.remove_hold(one));
    }
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

/// The same where holds end one by one.
pub fn drop_few<T>(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    act: impl FnOnce(&mut Watch, &mut Changed) -> T,
) -> Option<T> {
    change_few(core, key, owner, |hold, changed| {
        hold.watch.as_deref_mut().map(|watch| act(watch, changed))
    })
    .flatten()
}

/// An owner has the hold that it wanted. `before`: how many it had in each mode.
pub fn on_acquired(core: &mut Core, key: &Key, want: &Want, before: &[(Mode, i64)], now: Now) {
    let owner = &want.owner;
    if count(before) == 0 && want.binding().is_empty() {
        let client = want.client;
        core.locks
            .change_hold(key, owner, |hold| hold.client = client);
        return;
    }
    let bound = longest(core, now);
    let end = core.locks.lease_end(key, owner);
    change_few(core, key, owner, |hold, changed| {
        let watch = watch_of(hold, before);
        let new = Taken {
            client: want.client,
            watched: want.watch,
            mode: want.mode,
            holds: want.share.count(),
            notify: want.notify.clone(),
        };
        changed.begins(&new, watch.add(new.clone()));
        if want.watch {
            watch_again(watch, want.lease, bound, end, now);
        }
    });
}

/// An owner has acquired with ONCE what it held already: its holds in this mode are bound
/// to what the request names.
pub fn on_again(d: &mut Decision<'_>, key: &Key, want: &Want, holds: &[(Mode, i64)]) {
    let to = want.binding();
    if to.is_empty() {
        return;
    }
    let (bound, now) = (longest(d.core, d.now), d.now);
    let end = d.core.locks.lease_end(key, &want.owner);
    let mut was = Vec::new();
    change(d.core, key, &want.owner, |hold| {
        let watch = watch_of(hold, holds);
        was = watch.bind_again(to);
        if to.watch {
            watch_again(watch, want.lease, bound, end, now);
        }
    });
    rebound(d, key, &want.owner, was, to);
}

/// Holds are bound to something else from now on: what they were bound to is told.
fn rebound(d: &mut Decision<'_>, key: &Key, owner: &Owner, was: Vec<Taken>, to: Binding<'_>) {
    if !was.is_empty() {
        Counters::up(&mut d.core.counters.rebound);
        losses(d.out, key, owner, was, Reason::Rebound, to.client);
    }
}

/// A watchdog keeps the lease from now on, for at least this long each time.
fn watch_again(
    watch: &mut Watch,
    lease: i64,
    bound: Option<WallMs>,
    end: Option<WallMs>,
    now: Now,
) {
    let due = watch.next;
    watch.lease = watch.lease.max(lease);
    watch.bound = bound;
    watch.schedule(now);
    // Not later than it was due, and before the present end: the lease may not have been
    // lengthened.
    let left = end.map(|at| at.ms_from(now.wall_ms()) / 3);
    let in_time = left.map(|ms| now.deadline(ms));
    watch.next = [due, watch.next, in_time].into_iter().flatten().min();
}

/// What is known of an owner's holds, of which there were so many in each mode, and who
/// took them: the first one is known, but for holds that were found.
fn watch_of<'a>(hold: &'a mut Hold, before: &[(Mode, i64)]) -> &'a mut Watch {
    // Permits are taken several at a time.
    let by_one_request = |(mode, holds): &(Mode, i64)| *mode == Mode::Permits || *holds < 2;
    let is_known = count(before) == 1 || before.iter().all(by_one_request);
    let client = hold.client.filter(|_| is_known);
    hold.watch.get_or_insert_with(|| {
        let there = before.iter().filter(|(_, holds)| *holds > 0);
        let taken = there.map(|(mode, holds)| Taken {
            client,
            watched: false,
            mode: *mode,
            holds: *holds,
            notify: None,
        });
        let taken = taken.collect();
        Box::new(Watch {
            taken,
            ..Watch::default()
        })
    })
}

fn count(holds: &[(Mode, i64)]) -> i64 {
    let holds = holds.iter().map(|(_, holds)| *holds);
    holds.fold(0, i64::saturating_add)
}

/// No renewal of a watch that begins now goes beyond this.
fn longest(core: &Core, now: Now) -> Option<WallMs> {
    core.rules.watchdog_max.map(|max| now.deadline(max))
}

/// The lease of a watched hold was set by hand of its owner: that is the watchdog's
/// lease from now on. The renewal may bind all the owner's holds here to a connection, and
/// those in its mode to an address.
pub fn on_renewed(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    holds: &[(Mode, i64)],
    renewal: &Renewal<'_>,
) {
    let (bound, now, to) = (longest(d.core, d.now), d.now, renewal.binding());
    if to.is_empty() {
        change_few(d.core, key, owner, |hold, _| {
            let watch = hold.watch.as_mut().filter(|watch| watch.is_watched());
            if let Some(watch) = watch {
                watch.renewed(renewal.lease, bound, now);
            }
        });
        return;
    }
    let mut was = Vec::new();
    change(d.core, key, owner, |hold| {
        let is_watched = hold.watch.as_ref().is_some_and(|watch| watch.is_watched());
        let watch = watch_of(hold, holds);
        if to.watch {
            watch.bind_all(holds, to.client);
        }
        if to.notify.is_some() {
            was = watch.bind_again(to);
        }
        if is_watched || to.watch {
            watch.renewed(renewal.lease, bound, now);
        }
    });
    rebound(d, key, owner, was, to);
}

/// A connection is closed that something here was bound to: its watched holds, as they
/// were. Nothing is told to it any more.
pub fn on_closed(d: &mut Decision<'_>, key: &Key, owner: &Owner, client: ClientId) -> Vec<Taken> {
    let ended = change_watch(d.core, key, owner, |watch| {
        watch.taken.change_each(|taken| {
            taken.notify.take_if(|to| to.client == client);
        });
        watch.drop_watched(client)
    });
    ended.unwrap_or_default()
}

/// A hold is no more: what it was bound to.
pub fn unbind(core: &mut Core, key: &Key, hold: &Hold) -> Vec<Taken> {
    let Some(watch) = &hold.watch else {
        return Vec::new();
    };
    let was = Indexed::of(Some(watch));
    index(
        core,
        &(key.clone(), hold.owner.clone()),
        &was,
        &Indexed::default(),
    );
    watch.taken.to_vec()
}

/// A hold is lost: those to whom it was bound have to know.
pub fn on_lost(d: &mut Decision<'_>, key: &Key, hold: &Hold, reason: Reason) {
    let lost = unbind(d.core, key, hold);
    tell_lost(d, key, &hold.owner, lost, reason);
}

/// A hold is lost by FORCE. The connection that does it is not closed if a watchdog hold of
/// its own is among those.
pub fn on_forced(d: &mut Decision<'_>, key: &Key, hold: &Hold, by: Option<ClientId>) {
    let mut lost = unbind(d.core, key, hold);
    for taken in lost.iter_mut().filter(|taken| taken.client == by) {
        taken.watched = false;
    }
    tell_lost(d, key, &hold.owner, lost, Reason::Forced);
}

/// These holds are lost to whomever they were bound to.
pub fn tell_lost(d: &mut Decision<'_>, key: &Key, owner: &Owner, lost: Vec<Taken>, reason: Reason) {
    losses(d.out, key, owner, lost, reason, None);
}

/// What is told of the loss of these holds: to each address, and, by their close, to the
/// connections that watched some of them and have given none. `heir`: the connection that
/// has them from now on.
pub fn losses(
    out: &mut Notices,
    key: &Key,
    owner: &Owner,
    lost: Vec<Taken>,
    reason: Reason,
    heir: Option<ClientId>,
) {
    let watchers: BTreeSet<ClientId> = lost.iter().filter_map(Taken::watcher).collect();
    let told: BTreeSet<ClientId> = lost.iter().filter_map(Taken::told).collect();
    let mut known = BTreeSet::new();
    let named = lost.into_iter().filter_map(|taken| {
        let address = taken.notify?;
        let is_new = known.insert((taken.mode, address.clone()));
        is_new.then_some(address)
    });
    let named = named.map(|address| {
        // One that watches too, be it another hold, is closed if it does not hear.
        let watches = watchers.contains(&address.client);
        (watches.then_some(address.client), Some(address))
    });
    let closed = watchers.difference(&told);
    let closed = closed.map(|client| (Some(*client), None));
    out.extend(named.chain(closed).map(|(watcher, address)| {
        Notice::Lost(Loss {
            key: key.clone(),
            owner: owner.clone(),
            watcher,
            address,
            reason,
            heir,
        })
    }));
}

/// Holds were released by this connection: others that were to be told of their loss are.
pub fn on_released(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    released: Vec<Taken>,
    by: Option<ClientId>,
) {
    let others = released.into_iter().filter_map(|taken| {
        let notify = taken.notify.filter(|to| Some(to.client) != by);
        notify.is_some().then_some(Taken {
            watched: false,
            notify,
            ..taken
        })
    });
    tell_lost(d, key, owner, others.collect(), Reason::Released);
}

/// The owner's holds in this mode are lost, others of its are not.
pub fn on_lost_in(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, reason: Reason) {
    let lost = change_watch(d.core, key, owner, |watch| watch.drop_all(mode));
    tell_lost(d, key, owner, lost.unwrap_or_default(), reason);
}

/// What is bound to holds on all these keys is lost, for they go by other names now.
pub fn on_moved(d: &mut Decision<'_>, keys: impl Fn(&Key) -> bool) {
    let locks = &d.core.locks;
    // Not those whose lock has ended: what follows for them is to come.
    let is_there = |(key, owner): &Bond| {
        let hold = keys(key).then(|| locks.hold(key, owner)).flatten();
        hold.is_some_and(|hold| hold.watch.is_some())
    };
    for (key, owner) in d.core.watchdogs.forget(is_there) {
        let unbound = d.core.locks.change_hold(&key, &owner, |hold| {
            let watch = hold.watch.as_mut()?;
            let (holds, lost) = (watch.watched(), watch.unbind(|_| true));
            watch.rest();
            Some((holds, lost))
        });
        let Some((holds, lost)) = unbound.flatten() else {
            continue;
        };
        d.core.watchdogs.fewer(holds);
        for address in lost.iter().filter_map(|taken| taken.notify.as_ref()) {
            d.core.sessions.remove_hold(address);
        }
        tell_lost(d, &key, &owner, lost, Reason::Moved);
    }
}
