//! What becomes of watches as their holds begin and end.

use std::collections::BTreeMap;

use super::hints::Bond;
use super::index::Indexed;
use super::losses::{Losing, Lost, Why};
use crate::lock::ask::{Renewal, Want};
use crate::lock::counters::Counters;
use crate::lock::table::{Changed, Hold, Taken, Unbound, Watch};
use crate::lock::{
    ClientId, Core, Decision, Key, Loss, Mode, Notice, Notices, Now, Owner, Reason, WallMs,
};

/// Changes what is known of a hold that may be watched, and with it the indexes. What is not bound
/// any more to what it was: that is to be told, or let go.
fn change<T>(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    change: impl FnOnce(&mut Hold, &mut Changed) -> T,
) -> Option<(T, Unbound)> {
    let mut changed = Changed::default();
    let (result, was, is) = core.locks.change_hold(key, owner, |hold| {
        let was = Indexed::of(hold.watch.as_deref());
        let result = change(hold, &mut changed);
        if let Some(watch) = hold.watch.as_mut().filter(|watch| !watch.is_watched()) {
            watch.rest();
        }
        (result, was, Indexed::of(hold.watch.as_deref()))
    })?;
    core.watchdogs
        .change(&(key.clone(), owner.clone()), &was, &is);
    for address in &changed.begun {
        core.sessions.add_hold(address);
    }
    Some((result, changed.ended))
}

/// The same for a hold that has a watch, where nothing comes to be bound or unbound.
pub fn change_watch(core: &mut Core, key: &Key, owner: &Owner, act: impl FnOnce(&mut Watch)) {
    change(core, key, owner, |hold, _| {
        hold.watch.as_deref_mut().map(act)
    });
}

/// The same where holds end, or are not bound any more: these.
pub fn unbind_some(
    core: &mut Core,
    key: &Key,
    owner: &Owner,
    act: impl FnOnce(&mut Watch, &mut Changed),
) -> Unbound {
    let changed = change(core, key, owner, |hold, changed| {
        if let Some(watch) = hold.watch.as_deref_mut() {
            act(watch, changed);
        }
    });
    changed.map(|(_, ended)| ended).unwrap_or_default()
}

/// Of holds that are not bound any more nothing is told.
pub fn let_go(core: &mut Core, unbound: &Unbound) {
    for address in unbound.all().filter_map(|taken| taken.notify.as_ref()) {
        core.sessions.remove_hold(address);
    }
}

/// An owner has the hold that it wanted. `before`: how many it had in each mode.
pub fn on_acquired(core: &mut Core, key: &Key, want: &Want, before: &[(Mode, i64)], now: Now) {
    let (owner, client) = (&want.owner, want.client);
    if count(before) == 0 && want.binding().is_empty() {
        core.locks
            .change_hold(key, owner, |hold| hold.client = client);
        return;
    }
    let bound = longest(core, now);
    let end = core.locks.lease_end(key, owner);
    change(core, key, owner, |hold, changed| {
        let watch = watch_of(hold, before);
        let new = Taken {
            client: want.client,
            watched: want.watch,
            mode: want.mode,
            holds: want.share.count(),
            notify: want.notify.clone(),
        };
        watch.add(new, changed);
        if want.watch {
            watch_again(watch, want.lease, bound, end, now);
        }
    });
    let hints = &mut core.watchdogs.hints;
    hints.bound(key, owner, want.binding(), want.lease, now);
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
    let changed = change(d.core, key, &want.owner, |hold, changed| {
        let watch = watch_of(hold, holds);
        let other = watch.bind_again(to, changed);
        if to.watch {
            watch_again(watch, want.lease, bound, end, now);
        }
        other
    });
    let hints = &mut d.core.watchdogs.hints;
    hints.bound(key, &want.owner, to, want.lease, now);
    rebound(d, key, &want.owner, changed, to.client);
}

/// Holds are bound to something else from now on: what they were bound to is told.
fn rebound(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    changed: Option<(bool, Unbound)>,
    heir: Option<ClientId>,
) {
    let Some((other, was)) = changed else { return };
    if other {
        Counters::up(&mut d.core.counters.rebound);
    }
    let why = Why {
        heir,
        ..Why::lost(Reason::Rebound)
    };
    tell(d, key, owner, was, why);
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
    watch.asked = watch.asked.max(now.deadline(lease));
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
    d.core.watchdogs.hints.renewed(key, owner, renewal, now);
    if to.is_empty() {
        change_watch(d.core, key, owner, |watch| {
            if watch.is_watched() {
                watch.renewed(renewal.lease, bound, now);
            }
        });
        return;
    }
    let changed = change(d.core, key, owner, |hold, changed| {
        let is_watched = hold.watch.as_ref().is_some_and(|watch| watch.is_watched());
        let watch = watch_of(hold, holds);
        if to.watch {
            watch.bind_all(holds, to.client, changed);
        }
        let other = to.notify.is_some() && watch.bind_again(to, changed);
        if is_watched || to.watch {
            watch.renewed(renewal.lease, bound, now);
        }
        other
    });
    let hints = &mut d.core.watchdogs.hints;
    hints.bound(key, owner, to, renewal.lease, now);
    rebound(d, key, owner, changed, to.client);
}

/// A connection is closed that something here was bound to, and with it end so many holds in each
/// mode; and what is not bound any more. Nothing is told to it any more.
pub fn on_closed(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    client: ClientId,
) -> (Vec<(Mode, i64)>, Unbound) {
    let mut holds = BTreeMap::new();
    let unbound = unbind_some(d.core, key, owner, |watch, changed| {
        holds = watch.close(client, changed);
    });
    (holds.into_iter().collect(), unbound)
}

/// A hold is no more: what it was bound to.
pub fn unbind(core: &mut Core, key: &Key, hold: Hold) -> Unbound {
    let Some(mut watch) = hold.watch else {
        return Unbound::default();
    };
    let was = Indexed::of(Some(&watch));
    core.watchdogs
        .change(&(key.clone(), hold.owner), &was, &Indexed::default());
    Unbound {
        told: watch.taken.take_all(),
        untold: Vec::new(),
    }
}

/// A hold is lost: those to whom it was bound have to know.
pub fn on_lost(d: &mut Decision<'_>, key: &Key, hold: Hold, reason: Reason) {
    let owner = hold.owner.clone();
    d.parted(key, &owner);
    let lost = unbind(d.core, key, hold);
    tell(d, key, &owner, lost, Why::lost(reason));
}

/// A hold is lost by FORCE. The connection that does it is not closed if a watchdog hold of
/// its own is among those.
pub fn on_forced(d: &mut Decision<'_>, key: &Key, hold: Hold, by: Option<ClientId>) {
    let owner = hold.owner.clone();
    d.parted(key, &owner);
    let lost = unbind(d.core, key, hold);
    let why = Why {
        by,
        ..Why::lost(Reason::Forced)
    };
    tell(d, key, &owner, lost, why);
}

/// Holds were released by this connection: others that were to be told of their loss are.
pub fn on_released(
    core: &mut Core,
    out: &mut Notices,
    key: &Key,
    owner: &Owner,
    released: Unbound,
    by: Option<ClientId>,
) {
    let why = Why {
        by,
        ..Why::lost(Reason::Released)
    };
    tell_of(core, out, key, owner, (released, why));
}

/// The same of a hold that is over with that.
pub fn on_over(core: &mut Core, out: &mut Notices, key: &Key, hold: Hold, by: Option<ClientId>) {
    let owner = hold.owner.clone();
    let released = unbind(core, key, hold);
    on_released(core, out, key, &owner, released, by);
}

/// The owner's holds in this mode are lost, others of its are not.
pub fn on_lost_in(d: &mut Decision<'_>, key: &Key, owner: &Owner, mode: Mode, reason: Reason) {
    d.parted(key, owner);
    let lost = unbind_some(d.core, key, owner, |watch, changed| {
        watch.drop_all(mode, changed);
    });
    tell(d, key, owner, lost, Why::lost(reason));
}

/// The loss of these holds is told: to each address, and, by their close, to the connections
/// that watched some of them and have given none.
pub fn tell(d: &mut Decision<'_>, key: &Key, owner: &Owner, lost: Unbound, why: Why) {
    tell_of(d.core, d.out, key, owner, (lost, why));
}

fn tell_of(
    core: &mut Core,
    out: &mut Notices,
    key: &Key,
    owner: &Owner,
    (lost, why): (Unbound, Why),
) {
    let is_bound = |taken: &Taken| taken.bound_to().next().is_some();
    if !lost.all().any(is_bound) {
        return;
    }
    let mut losing = Losing::new(key, owner, lost, why);
    let closes = losing.closes();
    if losing.are_many() {
        closes.into_iter().for_each(|loss| notice(core, out, loss));
        core.losses.put(losing);
        return;
    }
    while let Some(lost) = losing.next() {
        tell_one(core, out, lost);
    }
    closes.into_iter().for_each(|loss| notice(core, out, loss));
}

fn notice(core: &mut Core, out: &mut Notices, loss: Loss) {
    core.counters.lost(loss.reason);
    out.push(Notice::Lost(loss));
}

/// Some of very many are told of: so many.
pub fn tell_some(d: &mut Decision<'_>, most: usize) {
    for _ in 0..most {
        let Some(lost) = d.core.losses.next() else {
            return;
        };
        tell_one(d.core, d.out, lost);
    }
}

fn tell_one(core: &mut Core, out: &mut Notices, lost: Lost) {
    if let Some(address) = &lost.address {
        core.sessions.remove_hold(address);
    }
    if let Some(loss) = lost.loss {
        notice(core, out, loss);
    }
}

/// A hold goes by another name: what it was bound to is lost.
pub fn let_rest(d: &mut Decision<'_>, key: &Key, hold: &mut Hold) {
    let Some(watch) = &mut hold.watch else { return };
    let (was, mut changed) = (Indexed::of(Some(watch)), Changed::default());
    watch.unbind(|_| true, &mut changed);
    watch.rest();
    d.core.watchdogs.change(
        &(key.clone(), hold.owner.clone()),
        &was,
        &Indexed::default(),
    );
    tell(d, key, &hold.owner, changed.ended, Why::lost(Reason::Moved));
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
            let (holds, mut changed) = (watch.watched(), Changed::default());
            watch.unbind(|_| true, &mut changed);
            watch.rest();
            Some((holds, changed.ended))
        });
        if let Some((holds, lost)) = unbound.flatten() {
            d.core.watchdogs.fewer(holds);
            tell(d, &key, &owner, lost, Why::lost(Reason::Moved));
        }
    }
}
