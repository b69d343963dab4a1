//! A request that is part of a cycle goes before others, if that leads out of it.

use super::cycles::{closes_a_cycle, foremost_that_waits_for};
use super::proof::proven;
use super::steps::TooFar;

use crate::lock::grant::{self, Tried};
use crate::lock::queue::Rank;
use crate::lock::{leaving, Decision, Link, WaiterId};

/// Seeks a way out: the request goes before the foremost waiter that waits for
/// its owner, and has the lock if it is free for it there. The cycle that is
/// left, if one is.
pub fn let_past(d: &mut Decision<'_>, id: WaiterId, cycle: Vec<Link>) -> Option<Vec<Link>> {
    let now = d.now;
    let Some(rank) = foremost_that_waits_for(d.core, id, now) else {
        return Some(cycle);
    };
    let place = Rank::just_before(&rank, d.core.queues.number());
    leaving::rerank(d.core, id, |waiter| waiter.rank = place);
    if grant::try_grant(d, id) != Tried::Waits {
        return None;
    }
    match proven(d, |core| closes_a_cycle(core, id, now)) {
        Ok(left) => left,
        // There may be one left.
        Err(TooFar) => Some(cycle),
    }
}

/// As [`let_past`], for a request that waits already. If that is no way out it
/// stays where it was.
pub fn finds_a_way(d: &mut Decision<'_>, id: WaiterId) -> bool {
    let Some(rank) = d.core.queues.get(id).map(|waiter| waiter.rank.clone()) else {
        return false;
    };
    if let_past(d, id, Vec::new()).is_none() {
        return true;
    }
    leaving::rerank(d.core, id, |waiter| waiter.rank = rank);
    false
}
