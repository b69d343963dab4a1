//! Waits that end without the lock: their time is over, or they are called off.

use super::counters::Counters;
use super::leaving;
use super::{Decision, Mode, Outcome, WaiterId};

/// The time of a request is over.
pub fn timed_out(d: &mut Decision<'_>, id: WaiterId) {
    Counters::up(&mut d.core.counters.timed_out);
    end(d, id);
}

/// CANCEL: the waits of an owner for a key end, in this mode or in any. How many.
pub fn cancel(d: &mut Decision<'_>, db: i32, name: &[u8], owner: &[u8], mode: Option<Mode>) -> i64 {
    let key = d.core.locks.key(db, name);
    // What is not wanted any more has no place either.
    d.core.queues.kept().cancel(&key, owner, mode);
    let mut cancelled: i64 = 0;
    let requests = d.core.queues.requests(owner, &key);
    for id in requests.map(|(_, id)| id).collect::<Vec<_>>() {
        let waiter = d.core.queues.get(id);
        if waiter.is_some_and(|waiter| mode.is_none_or(|mode| mode == waiter.want.mode)) {
            cancelled = cancelled.saturating_add(1);
            Counters::up(&mut d.core.counters.cancelled);
            end(d, id);
        }
    }
    cancelled
}

fn end(d: &mut Decision<'_>, id: WaiterId) {
    let to = leaving::give_up(d.core, &mut d.work, id);
    d.answer(id, to, Outcome::TimedOut);
}
