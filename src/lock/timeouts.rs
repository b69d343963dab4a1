//! Waits whose BLOCK time is over.

use super::counters::Counters;
use super::leaving;
use super::{Decision, Outcome, WaiterId};

/// The BLOCK time of a request is over.
pub fn timed_out(d: &mut Decision<'_>, id: WaiterId) {
    leaving::give_up(d.core, &mut d.work, id);
    Counters::up(&mut d.core.counters.timed_out);
    d.answer(id, Outcome::TimedOut);
}
