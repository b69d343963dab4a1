//! Waits whose BLOCK time is over.

use super::counters::Counters;
use super::leaving;
use super::{Decision, Outcome, WaiterId};

/// Ends the waits whose BLOCK time is over, at most so many.
pub fn time_out(d: &mut Decision<'_>, most: usize) {
    for id in d.core.queues.over(d.now, most) {
        timed_out(d, id);
    }
}

/// The BLOCK time of a request is over.
pub fn timed_out(d: &mut Decision<'_>, id: WaiterId) {
    leaving::give_up(d.core, &mut d.work, id);
    Counters::up(&mut d.core.counters.timed_out);
    d.answer(id, Outcome::TimedOut);
}
