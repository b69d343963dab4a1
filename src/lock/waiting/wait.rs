//! A request that cannot have its lock now waits for it.

use super::again::{same_request, take_over};
use super::crowd;
use super::drain::drain;

use crate::lock::ask::{Ask, Once, Want};
use crate::lock::counters::Counters;
use crate::lock::deadlock::{self, TooFar};
use crate::lock::grant::{try_grant, Tried};
use crate::lock::kind::permits::hoards::forget_hoards;
use crate::lock::queue::{Keys, Rank, Waiter};
use crate::lock::{leaving, reconcile};
use crate::lock::{Core, Decision, Link, Refusal, Verdict, WaiterId};

/// The lock is not to be had now: the request is refused, or waits if it says so, unless
/// it would wait for itself. `as_known`: it was just seen who holds it.
pub fn wait_for(
    d: &mut Decision<'_>,
    keys: impl Into<Keys>,
    ask: &Ask<'_>,
    as_known: bool,
) -> Result<Verdict, Refusal> {
    Counters::up(&mut d.core.counters.contended);
    let Some(wait) = ask.wait else {
        return Ok(Verdict::Refused);
    };
    let (keys, want) = (keys.into(), Want::of(ask));
    for key in keys.iter().filter(|_| !as_known) {
        reconcile::know_holder(d, key);
    }
    // Who was found dead on the way may have let somebody else in.
    let stirred = d.work.is_stirred();
    if stirred {
        drain(d);
    }
    let id = d.core.queues.number();
    let upgrades = deadlock::upgrades(d.core, &keys, &want);
    let rank = match keys.first() {
        Some(key) if upgrades => leaving::front(d.core, key, id),
        _ => Rank::arrived(id),
    };
    let waiter = Waiter {
        lacks: 0,
        keys,
        want,
        rank,
        since: d.now.mono,
        until: wait.until(d.now),
        queued: wait.queued,
    };
    if stirred {
        d.work.dirty.extend(waiter.keys.iter().cloned());
    }
    d.asking = Some(id);
    let kept = stand_in_line(d, id, waiter)?;
    // Those who kept it out may have come after it.
    if kept && try_grant(d, id) != Tried::Waits {
        return Ok(Verdict::Waits(id));
    }
    let cycle = cycle_left(d, id, upgrades, kept);
    let Some(cycle) = cycle else {
        return Ok(Verdict::Waits(id));
    };
    // As if it had never come.
    leaving::dequeue(d.core, id);
    Counters::up(&mut d.core.counters.deadlocks);
    Err(Refusal::Deadlock { cycle })
}

/// The cycle that a request closes, if it finds no way out. `kept`: it has an older place.
fn cycle_left(d: &mut Decision<'_>, id: WaiterId, upgrades: bool, kept: bool) -> Option<Vec<Link>> {
    let now = d.now;
    let find = |core: &Core| {
        let second = upgrades
            .then(|| deadlock::other_upgrade(core, id))
            .flatten();
        second.map_or_else(
            || deadlock::closes_a_cycle(core, id, now),
            |cycle| Ok(Some(cycle)),
        )
    };
    let mut cycle = deadlock::proven(d, find);
    if matches!(cycle, Ok(Some(_))) && kept {
        // Its place is no good any more: as if it came only now.
        let behind = (Rank::arrived(id), now.mono);
        leaving::rerank(d.core, id, |waiter| {
            (waiter.rank, waiter.since) = behind;
        });
        cycle = deadlock::proven(d, find);
    }
    match cycle {
        Ok(Some(cycle)) if !upgrades => deadlock::let_past(d, id, cycle),
        Ok(cycle) => cycle,
        Err(TooFar) => {
            deadlock::suspect(d.core, id);
            None
        }
    }
}

/// Puts a request into its queues: with ONCE in the place that it has there already, or had
/// until its connection closed. Whether it was the latter. If it is one more, there may be too
/// many.
fn stand_in_line(d: &mut Decision<'_>, id: WaiterId, mut waiter: Waiter) -> Result<bool, Refusal> {
    let mut is_kept = false;
    if waiter.want.once == Once::IsTheSame {
        let (keys, owner) = (&*waiter.keys, &waiter.want.owner);
        let asked = (waiter.want.mode, waiter.want.share);
        if let Some(old) = same_request(d.core, keys, owner, asked) {
            take_over(d, old, id, waiter);
            return Ok(false);
        }
        let kept = d.core.queues.kept().take(keys, owner, asked, d.now);
        // An upgrade has a place of its own.
        if let Some((rank, since)) = kept.filter(|_| !waiter.rank.is_front()) {
            (waiter.rank, waiter.since) = (rank, since);
            is_kept = true;
        }
    }
    if !is_kept {
        crowd::admit(d.core, &waiter)?;
    }
    let keys = waiter.keys.clone();
    leaving::enqueue(d.core, id, waiter);
    keys.iter().for_each(|key| forget_hoards(d.core, key));
    Ok(is_kept)
}
