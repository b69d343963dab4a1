//! RELEASE: ends a hold.

use super::end_holds::end_holds;

use crate::lock::ask::Ended;
use crate::lock::{modes, ready, watchdog};
use crate::lock::{Decision, Event, Key, Kind, Look, Mode, Owner, Refusal, Whom};

/// Ends the newest hold of the owner in a mode, or all of them; how many are
/// left. The last one frees the lock, which goes to the head of the queue when the
/// decision is drained.
pub fn release(d: &mut Decision<'_>, name: &[u8], ended: &Ended<'_>) -> Result<i64, Refusal> {
    let key = d.core.locks.key(ended.db, name);
    let look = ready::look(d, &key, ended.owner);
    release_one(d, &key, ended, look)
}

/// As [`release`], on a key that was looked at.
pub fn release_one(
    d: &mut Decision<'_>,
    key: &Key,
    ended: &Ended<'_>,
    look: Look,
) -> Result<i64, Refusal> {
    let holds = modes::require(d.core, key, ended.owner, ended.mode, &look)?;
    if ended.mode == Mode::Read {
        modes::require_leases(d.core, key, ended.owner, &look)?;
    }
    let by = if ended.all { holds } else { 1 };
    if look.kind == Kind::Plain && holds == by {
        for hold in d.free(key, Event::Released, Whom::One) {
            watchdog::on_lost_with(d.core, key, &hold);
        }
        return Ok(0);
    }
    let owner = Owner::from(ended.owner);
    watchdog::change_watch(d.core, key, &owner, |watch| {
        if ended.all {
            watch.drop_all(ended.mode);
        } else {
            watch.drop_one(ended.mode, ended.client);
        }
    });
    end_holds(d, key, &owner, look, &[(ended.mode, by)]);
    Ok(holds.saturating_sub(by))
}
