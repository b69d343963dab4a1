//! RELEASE: ends a hold.

use super::end_holds::end_holds;
use super::meant;

use crate::lock::ask::Ended;
use crate::lock::table::Unbound;
use crate::lock::{modes, ready, watchdog};
use crate::lock::{Decision, Event, Key, Kind, Look, Mode, NoPermits, Owner, Refusal, WakeTarget};

/// Ends the newest hold of the owner in a mode, or all of them; how many are
/// left. The last one frees the lock, which goes to the head of the queue when the
/// decision is drained. 0 too where the request means other holds than are there.
pub fn release(d: &mut Decision<'_>, name: &[u8], ended: &Ended<'_>) -> Result<i64, Refusal> {
    let key = d.core.locks.key(ended.db, name);
    // Whether a token is that of the hold under way, its end tells too.
    let look = match ended.only {
        Some(_) => ready::look(d, &key, ended.owner),
        None => ready::look_to_release(d, &key, ended.owner),
    };
    release_one(d, &key, ended, look)
}

/// As [`release`], on a key that was looked at.
pub fn release_one(
    d: &mut Decision<'_>,
    key: &Key,
    ended: &Ended<'_>,
    look: Look,
) -> Result<i64, Refusal> {
    let holds = match modes::require(d.core, key, ended.owner, ended.mode, &look) {
        Err(Refusal::NotHeld { .. }) if ended.only.is_some() => return Ok(0),
        holds => holds?,
    };
    if ended.mode == Mode::Read {
        modes::require_leases(d.core, key, ended.owner, &look)?;
    }
    if !meant::is_to_end(d, key, ended)? {
        return Ok(0);
    }
    let by = ended.count.unwrap_or(holds);
    if by > holds {
        let owner = Owner::from(ended.owner);
        let why = NoPermits::TooFew { owner, held: holds };
        let key = key.clone();
        return Err(Refusal::Permits { key, why });
    }
    if look.kind == Kind::Plain && holds == by {
        for hold in d.free(key, Event::Released, WakeTarget::One) {
            watchdog::on_over(d.core, d.out, key, hold, ended.client);
        }
        return Ok(0);
    }
    let owner = Owner::from(ended.owner);
    let released = watchdog::unbind_some(d.core, key, &owner, |watch, changed| {
        if holds == by {
            watch.drop_all(ended.mode, changed);
        } else {
            watch.drop_some(ended.mode, ended.client, by, changed);
        }
    });
    settle_grants(d, key, &owner, &released);
    end_holds(d, key, &owner, look, &[(ended.mode, by)]);
    watchdog::on_released(d.core, d.out, key, &owner, released, ended.client);
    Ok(holds.saturating_sub(by))
}

/// What a connection was granted and has released is not taken back from it later.
fn settle_grants(d: &mut Decision<'_>, key: &Key, owner: &Owner, released: &Unbound) {
    if d.core.in_flight.grants.is_empty() {
        return;
    }
    for taken in released.all() {
        let hold = d.core.locks.hold(key, owner);
        let watch = hold.and_then(|hold| hold.watch.as_ref());
        if watch.is_none_or(|watch| !watch.has(taken.mode, taken.client)) {
            let in_flight = &mut d.core.in_flight;
            in_flight.forget_released(key, owner, taken.mode, taken.client);
        }
    }
}
