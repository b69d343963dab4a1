//! One who waits is given what it waits for, if that is to be had.

use super::plan::{carry_out, fresh, plan, Given};

use crate::lock::in_flight::Grant;
use crate::lock::queue::Waiter;
use crate::lock::{leaving, subscribers, timeouts};
use crate::lock::{Act, Decision, Outcome, Refusal, WaiterId};

/// What became of one that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// What it waits for is not to be had yet.
    Waits,
    /// Its wait is over without that.
    Leaves,
    /// It has it.
    Has,
}

/// One who waits, and stands first in a queue, or holds something now: it is
/// given what it waits for if that is to be had.
pub fn try_grant(d: &mut Decision<'_>, id: WaiterId) -> Tried {
    let Some(waiter) = d.core.queues.get(id).cloned() else {
        return Tried::Leaves;
    };
    if waiter.is_late(d.now) {
        timeouts::timed_out(d, id);
        return Tried::Leaves;
    }
    if d.core.heard.is_closed(waiter.want.client) {
        leaving::cut_off(d.core, &mut d.work, d.now, id);
        return Tried::Leaves;
    }
    match take(d, id, &waiter) {
        Ok(Some(given)) => {
            granted(d, id, waiter, given);
            return Tried::Has;
        }
        Ok(None) => return Tried::Waits,
        Err(Refusal::Migrating { key }) => {
            d.core.away.look_again(&key);
            return Tried::Waits;
        }
        Err(Refusal::Vanished { key }) => {
            d.core.due.dirty.insert(key);
            return Tried::Waits;
        }
        Err(Refusal::NobodyListens) => {
            leaving::give_up(d.core, &mut d.work, id);
        }
        Err(refusal) => refuse(d, id, refusal),
    }
    Tried::Leaves
}

/// It leaves its queues with what it waits for, if that is to be had; else it stays.
fn take(d: &mut Decision<'_>, id: WaiterId, waiter: &Waiter) -> Result<Option<Given>, Refusal> {
    let Some(mut plan) = plan(d, Some(id), &waiter.keys, &waiter.want)? else {
        return Ok(None);
    };
    // The reply to the request that is decided tells of it.
    if d.asking != Some(id) && !waiter.would_hear(d.ks) {
        return Err(Refusal::NobodyListens);
    }
    require_rights(d, id, waiter)?;
    let fresh = fresh(d, &waiter.want, &mut plan)?;
    let gone = leaving::dequeue(d.core, id);
    debug_assert!(gone.is_some(), "who is given something waits for it");
    if let Some(gone) = gone {
        leaving::left(d.core, &mut d.work, &gone);
    }
    let given = carry_out(d, &waiter.want, plan, fresh);
    if given.is_err() {
        leaving::enqueue(d.core, id, waiter.clone());
    }
    given.map(Some)
}

/// The server has looked at the rights of who asks now, but not since at those of who waits.
fn require_rights(d: &mut Decision<'_>, id: WaiterId, waiter: &Waiter) -> Result<(), Refusal> {
    let asked_before = waiter.want.client.filter(|_| d.asking != Some(id));
    let act = Act::Acquire(&waiter.keys);
    match (asked_before, &*waiter.keys) {
        (Some(client), [key, ..]) if !d.ks.may(client, act) => {
            Err(Refusal::NoPermission { key: key.clone() })
        }
        _ => Ok(()),
    }
}

/// A waiter has what it waited for.
fn granted(d: &mut Decision<'_>, id: WaiterId, waiter: Waiter, (token, keys): Given) {
    let waited = d.now.mono.since(waiter.since);
    d.core.counters.waits.add(waited, d.now.wall_ms());
    for (key, _) in &keys {
        subscribers::passed(d.core, d.out, key, waiter.want.mode.is_read_write());
    }
    let to = waiter.told_at().cloned();
    // The reply to the request that is decided leaves with the decision.
    if d.asking != Some(id) {
        let grant = Grant::new(keys, waiter.want);
        let other = d.core.in_flight.grants.insert(id, grant);
        debug_assert!(other.is_none(), "a request is granted once");
    }
    d.answer(id, to, Outcome::Granted(token));
}

/// The request can never be granted.
pub fn refuse(d: &mut Decision<'_>, id: WaiterId, refusal: Refusal) {
    let to = leaving::give_up(d.core, &mut d.work, id);
    d.answer(id, to, Outcome::Refused(refusal));
}
