//! Requests enter their queues and leave them, and what follows for those behind.

use std::collections::BTreeSet;

use super::address::Address;
use super::head;
use super::queue::{Gone, Portion, Rank, Waiter};
use super::table::Shared;
use super::work::Work;
use super::{Core, Key, Now, Owner, WaiterId};

/// Of so many requests it is looked whether they can have the rest of their keys, when another has
/// come to stand with them: for a hint, which may come later.
const MOST_STIRRED: usize = 16;

/// Puts a request into its queues.
pub fn enqueue(core: &mut Core, id: WaiterId, waiter: Waiter) {
    if let Some(address) = waiter.told_at() {
        core.sessions.add_wait(address, id);
    }
    for key in core.queues.insert(id, waiter) {
        core.locks.set_waited_for(&key, true);
    }
    let Some(waiter) = core.queues.get(id) else {
        return;
    };
    let owner = waiter.want.owner.clone();
    let has_permits = |key: &&Key| core.locks.has_permits(key, &owner);
    let keys: Vec<Key> = waiter.keys.iter().filter(has_permits).cloned().collect();
    for key in keys {
        mark_waits(core, &key, &owner, [id]);
    }
    stir(core, id);
}

/// These requests for a lock are of an owner that holds permits of it, if it does.
pub fn mark_waits(
    core: &mut Core,
    key: &Key,
    owner: &[u8],
    requests: impl IntoIterator<Item = WaiterId>,
) {
    if !core.locks.has_permits(key, owner) {
        return;
    }
    for id in requests {
        core.locks.set_waits(key, owner, true);
        core.queues.hoards(key, id);
    }
}

/// Who waits for a key is known of it from now on: it came here by another name.
pub fn know_who_waits(core: &mut Core, key: &Key) {
    let waiting = know_whether_any_waits(core, key);
    let shared = core.locks.shared(key).filter(|of| of.pool().is_some());
    for owner in shared.map_or_else(BTreeSet::new, |of| who_may_wait(core, key, of, waiting)) {
        let requests = core.queues.requests(&owner, key);
        let requests: Vec<WaiterId> = requests.map(|(_, id)| id).collect();
        if requests.is_empty() {
            core.locks.set_waits(key, &owner, false);
        }
        mark_waits(core, key, &owner, requests);
    }
}

/// How many wait for a key. That any does is known of it from now on.
pub fn know_whether_any_waits(core: &mut Core, key: &Key) -> usize {
    let waiting = core.queues.line(key).queue.len();
    let was = core.locks.get(key).is_some_and(|entry| entry.waited_for);
    if was != (waiting > 0) {
        core.locks.set_waited_for(key, waiting > 0);
    }
    waiting
}

/// Those of whom it may be known or not that they hold permits of a lock and wait for it.
fn who_may_wait(core: &Core, key: &Key, shared: &Shared, waiting: usize) -> BTreeSet<Owner> {
    // There may be very many who hold it, or who wait: the fewer are gone through.
    let all = shared.fields() <= waiting;
    if all {
        let holds = shared.holds();
        return holds.map(|hold| hold.owner.clone()).collect();
    }
    let waiting = core.queues.waiting(key);
    let mut owners: BTreeSet<Owner> = waiting.map(|one| one.want.owner.clone()).collect();
    if shared.stuck() > 0 {
        let known = shared.holds().filter(|hold| hold.waits);
        owners.extend(known.map(|hold| hold.owner.clone()));
    }
    owners
}

/// Gives a request another place.
pub fn rerank(core: &mut Core, id: WaiterId, place: impl FnOnce(&mut Waiter)) {
    core.queues.rerank(id, place);
    stir(core, id);
}

/// A request may have come to be first in a queue, or another by that, or one may lack what it did
/// not: who wants to know of them is looked at when the decision is over.
pub fn stir(core: &mut Core, id: WaiterId) {
    if core.watchdogs.hints.is_empty() {
        return;
    }
    let waiter = core.queues.get(id);
    let keys = waiter.into_iter().flat_map(|waiter| &waiter.keys);
    let front = |key| -> Vec<WaiterId> { core.queues.line(key).queue.ids().take(2).collect() };
    let fronts = keys.map(front).filter(|front| front.contains(&id));
    let stirred = fronts.flatten().collect();
    stir_keys_of(core, stirred);
}

/// The first in the queues of these keys has left.
fn stir_fronts(core: &mut Core, keys: &[Key]) {
    if core.watchdogs.hints.is_empty() {
        return;
    }
    keys.iter().for_each(|key| core.watchdogs.hints.stir(key));
    let front = |key| core.queues.line(key).queue.ids().next();
    let stirred = keys.iter().filter_map(front).collect();
    stir_keys_of(core, stirred);
}

fn stir_keys_of(core: &mut Core, stirred: BTreeSet<WaiterId>) {
    let (queues, hints) = (&core.queues, &mut core.watchdogs.hints);
    let keys = |id| queues.get(id).into_iter().flat_map(|waiter| &waiter.keys);
    for key in stirred.into_iter().take(MOST_STIRRED).flat_map(keys) {
        hints.stir(key);
    }
}

/// Takes a request out of its queues.
pub fn dequeue(core: &mut Core, id: WaiterId) -> Option<Gone> {
    let gone = core.queues.remove(id)?;
    if let Some(address) = gone.waiter.told_at() {
        core.sessions.remove_wait(address, id);
    }
    core.heartbeats.may_speak(&gone.waiter);
    stir_fronts(core, &gone.led);
    stir_fronts(core, &gone.emptied);
    let owner = &gone.waiter.want.owner;
    for key in &gone.waiter.keys {
        let has_permits = core.locks.has_permits(key, owner);
        if has_permits && core.queues.first_of(owner, key).is_none() {
            core.locks.set_waits(key, owner, false);
        }
    }
    for key in &gone.emptied {
        core.locks.set_waited_for(key, false);
    }
    Some(gone)
}

/// Takes a request out of the queue, however it ended. Harmless if it is not
/// in one any more. Whom that lets in is found out when `run::review` is run.
pub fn leave(core: &mut Core, id: WaiterId) {
    let mut work = Work::default();
    give_up(core, &mut work, id);
    core.due.append(work);
}

/// The same for a request whose connection has closed, which may be sent again by another:
/// it leaves before anything is decided. Where very many close at once each costs next to
/// nothing so. Whether it is the first of them.
pub fn disconnected(core: &mut Core, id: WaiterId) -> bool {
    let is_first = core.gone.is_empty();
    core.gone.push_back(id);
    is_first
}

/// All of them leave, before others are shown what is known.
pub fn let_all_leave(core: &mut Core, now: Now) {
    if !core.gone.is_empty() {
        let_leave(core, now, usize::MAX);
    }
}

/// The next of those leave, with so many keys. Whether others are to.
pub fn let_leave(core: &mut Core, now: Now, keys: usize) -> bool {
    let mut work = Work::default();
    let mut portion = Portion::new(keys);
    while !portion.is_over() {
        let Some(id) = core.gone.pop_front() else {
            break;
        };
        portion.takes(core.queues.get(id).map_or(1, |waiter| waiter.keys.len()));
        cut_off(core, &mut work, now, id);
    }
    core.due.append(work);
    !core.gone.is_empty()
}

fn keep_place(core: &mut Core, now: Now, id: WaiterId) {
    if let Some(ms) = core.rules.keep_place {
        core.queues.keep_place(id, ms, now);
    }
}

/// The queue of a key is to be looked at before the decision is over.
pub fn look_later(core: &Core, work: &mut Work, key: &Key) {
    if head::is_waited_for(core, key) {
        work.dirty.insert(key.clone());
    }
}

/// Takes a request out of its queues that gets nothing. Those of its owner's
/// that stood behind it there now stand behind others. Where it is told of that.
pub fn give_up(core: &mut Core, work: &mut Work, id: WaiterId) -> Option<Address> {
    let gone = dequeue(core, id)?;
    left(core, work, &gone);
    let owner = &gone.waiter.want.owner;
    for key in &gone.waiter.keys {
        // Who leaves makes nobody wait, but for its owner's other requests there.
        if core.queues.first_of(owner, key).is_some() {
            look_later(core, work, key);
            work.suspects.insert(owner.clone());
        }
    }
    gone.waiter.told_at().cloned()
}

/// As [`give_up`], for a request whose connection has closed: nobody is told.
pub fn cut_off(core: &mut Core, work: &mut Work, now: Now, id: WaiterId) {
    keep_place(core, now, id);
    give_up(core, work, id);
}

/// A request has left its queues: those behind it in them may be next.
pub fn left(core: &Core, work: &mut Work, gone: &Gone) {
    for key in &gone.emptied {
        if core.subscribers.place(key).is_some() {
            work.dirty.insert(key.clone());
        } else {
            work.dirty.remove(key);
        }
    }
    work.dirty.extend(gone.led.iter().cloned());
}

/// The place of an upgrade in the queue of a key: behind those that came before,
/// ahead of all others.
pub fn front(core: &Core, key: &Key, id: WaiterId) -> Rank {
    let reads = |owner: &[u8]| core.locks.knows_reader(key.db, &key.name, owner);
    let mut ahead = core.queues.waiting(key).take_while(|w| w.rank.is_front());
    match ahead.find(|other| !reads(&other.want.owner)) {
        // Its lease has ended since it asked to write.
        Some(other) => Rank::just_before(&other.rank, id),
        None => Rank::front(id),
    }
}
