//! Who holds a lock and wants to know (WANTED) is told that somebody waits whom it keeps out: when
//! one comes to be first in the queue, at a grant that finds one there, and again every third of its
//! lease. It is a hint, and nothing depends on it: it may come late, or twice.

use std::collections::BTreeSet;

use super::address::Address;
use super::head::{self, Next};
use super::queue::{Portion, Waiter};
use super::watchdog::Bond;
use super::{Core, Key, Notice, Notices, Now, Outcome, Owner, WaiterId};

/// It is looked at so many holds at once, the keys counted for which those wait who are first.
const AT_ONCE: usize = 512;

/// Of nested holds so many are told of, the newest.
const MOST_TOLD: usize = 64;

/// Of those that were granted it is looked so far back for the reply.
const REPLIES: usize = 128;

/// At the end of a decision, and when it is due: those are told whose holds have begun or who have
/// come to keep somebody out by it, some at a time.
// As a rule nobody wants to know.
#[inline]
pub fn look(core: &mut Core, out: &mut Notices, now: Now) {
    if core.watchdogs.hints.is_stirred() {
        look_at_some(core, out, now);
    }
}

fn look_at_some(core: &mut Core, out: &mut Notices, now: Now) {
    let mut portion = Portion::new(AT_ONCE);
    while !portion.is_over() {
        let begun = core.watchdogs.hints.next_begun();
        let reply_tells = begun.is_some();
        let Some(bond) = begun.or_else(|| next_stirred(core)) else {
            return;
        };
        portion.takes(look_at(core, out, now, &bond, reply_tells));
    }
}

/// The next hold that is to be looked at, for another may be first in the queue.
fn next_stirred(core: &mut Core) -> Option<Bond> {
    loop {
        let key = core.watchdogs.hints.next_stirred()?.clone();
        let first = head::next(core, &key);
        // The others of its keys may have come to be free; of those who subscribe it was asked.
        let is_one = |id: WaiterId| core.queues.get(id).is_some_and(|waiter| !waiter.is_many());
        let may_differ = match first {
            Some(Next::Waiter(id)) => !is_one(id),
            Some(Next::Subscribers) => true,
            None => false,
        };
        let next = core.watchdogs.hints.next_on(&key, first, may_differ);
        if next.is_some() {
            return next;
        }
    }
}

/// The time has come to look again at a hold.
pub fn look_again(core: &mut Core, out: &mut Notices, now: Now, bond: &Bond) {
    match head::next(core, &bond.0) {
        Some(Next::Waiter(_)) => drop(look_at(core, out, now, bond, false)),
        // What is found out stirs up its key: it is for all who hold it.
        _ if core.watchdogs.hints.is_first(bond) => {
            out.extend(head::ask_who_listens(core, &bond.0));
        }
        _ => {}
    }
}

/// At how many keys it was looked. `reply_tells`: the hold was granted, and the reply may not be out.
fn look_at(core: &mut Core, out: &mut Notices, now: Now, bond: &Bond, reply_tells: bool) -> usize {
    let (by, looks) = wanted_by(core, &bond.0, &bond.1);
    if core.watchdogs.hints.found(bond, by, now) {
        tell(core, out, bond, reply_tells);
    }
    looks
}

/// Who is first in the queue, if the owner keeps that one out, and at how many keys it was looked.
fn wanted_by(core: &Core, key: &Key, owner: &Owner) -> (Option<Next>, usize) {
    let first = head::next(core, key).filter(|_| head::keeps_out(core, key, owner));
    let Some(Next::Waiter(id)) = first else {
        return (first, 1);
    };
    let Some(waiter) = core.queues.get(id).filter(|waiter| waiter.is_many()) else {
        return (first, 1);
    };
    let mut looks: usize = 0;
    let mut keys = waiter.keys.iter().filter(|other| *other != key);
    let has_rest = keys.all(|other| {
        looks = looks.saturating_add(1);
        can_have(core, other, (id, waiter), owner)
    });
    (first.filter(|_| has_rest), looks.max(1))
}

/// Whether a request can have this one of its keys as soon as the owner lets go of what it holds.
fn can_have(core: &Core, key: &Key, (id, waiter): (WaiterId, &Waiter), owner: &Owner) -> bool {
    let its = &waiter.want.owner;
    let entry = core.locks.get(key);
    let mut holds = entry.into_iter().flat_map(|entry| entry.holds()).peekable();
    let has_it = holds.peek().is_some_and(|hold| hold.owner == *its);
    let is_next = || head::next(core, key) == Some(Next::Waiter(id));
    has_it || is_next() && holds.all(|hold| hold.owner == *owner)
}

/// Wherever it is to be told of an owner's holds: if a grant is told there, with that.
fn tell(core: &Core, out: &mut Notices, (key, owner): &Bond, reply_tells: bool) {
    let hold = core.locks.hold(key, owner);
    let taken = hold.into_iter().flat_map(|hold| &hold.watch);
    let taken = taken.flat_map(|watch| watch.taken.iter().rev());
    let hinted = taken.filter_map(|taken| Some((taken.hinted_at()?, taken.watcher())));
    let mut told = BTreeSet::new();
    for (to, watcher) in hinted.take(MOST_TOLD) {
        let is_told = !told.insert(to) || reply_tells && by_the_reply(out, to);
        if !is_told {
            out.push(Notice::Wanted {
                closes: watcher == Some(to.client),
                address: to.clone(),
            });
        }
    }
}

/// Has the reply say it that tells there of a grant, if that is not out.
fn by_the_reply(out: &mut Notices, address: &Address) -> bool {
    let mut late = out.iter_mut().rev().take(REPLIES);
    let reply = late.find_map(|notice| match notice {
        Notice::Answer {
            to: Some(to),
            outcome: Outcome::Granted(_),
            wanted,
            ..
        } if to == address => Some(wanted),
        _ => None,
    });
    reply.map(|wanted| *wanted = true).is_some()
}
