//! What operators are told of the whole, in the section `rlock` of INFO.

use std::ffi::CStr;

use super::Core;
use crate::lock::{Now, Reason};

impl Core {
    /// What has happened since the module was loaded, and what is under way. Nothing here
    /// goes through all locks or all who wait.
    pub fn stats(&self, now: Now) -> Vec<(&'static CStr, u64)> {
        let counters = &self.counters;
        let (waits, holds) = (&counters.waits, &counters.holds);
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let wall = now.wall_ms();
        let hold_ms = since(self.locks.oldest(), wall.0);
        let wait_ms = since(self.queues.oldest(), now.mono.ms());
        let mut stats = vec![
            (c"acquired", counters.acquired),
            (c"contended", counters.contended),
            (c"granted_after_wait", waits.count),
            (c"timed_out", counters.timed_out),
            (c"released", counters.released),
            (c"renewed", counters.renewed),
            (c"expired", counters.expired),
            (c"forced", counters.forced),
            (c"evicted", counters.evicted),
            (c"cancelled", counters.cancelled),
            (c"deadlocks_refused", counters.deadlocks),
            (c"max_waiters_refused", counters.turned_away),
            (c"grants_revoked", counters.taken_back),
            (c"once_rebound", counters.rebound),
            (c"redisson_yields", counters.turns),
            (c"redisson_yields_used", counters.turns_used),
            (c"held", number(self.locks.held())),
            (c"watchdog_holds", self.watchdogs.count()),
            (c"oldest_hold_ms", hold_ms),
            (c"held_count", holds.count),
            (c"held_sum_ms", holds.sum_us / 1000),
            (c"held_p50_ms", holds.percentile(50) / 1000),
            (c"held_p99_ms", holds.percentile(99) / 1000),
            (c"held_max_ms", holds.longest_us / 1000),
            (
                c"held_max_last_minute_ms",
                holds.longest_of_late(wall) / 1000,
            ),
            (
                c"waiting",
                number(self.waiting().saturating_sub(self.gone.len())),
            ),
            (c"queued", number(self.queues.queued())),
            (c"oldest_wait_ms", wait_ms),
            (c"wait_count", waits.count),
            (c"wait_sum_us", waits.sum_us),
            (c"wait_p50_us", waits.percentile(50)),
            (c"wait_p99_us", waits.percentile(99)),
            (c"wait_max_us", waits.longest_us),
            (c"wait_max_last_minute_us", waits.longest_of_late(wall)),
            (c"recovery_presumed", number(self.presumed())),
        ];
        let lost = |reason: Reason| {
            let count = counters.lost.get(&reason).copied().unwrap_or(0);
            (lost_by(reason), count)
        };
        stats.extend(Reason::ALL.map(lost));
        stats
    }
}

/// The field that counts the losses of a reason.
const fn lost_by(reason: Reason) -> &'static CStr {
    match reason {
        Reason::Expired => c"lost_expired",
        Reason::Forced => c"lost_forced",
        Reason::Deleted => c"lost_deleted",
        Reason::Evicted => c"lost_evicted",
        Reason::Flushed => c"lost_flushed",
        Reason::Overwritten => c"lost_overwritten",
        Reason::Demoted => c"lost_demoted",
        Reason::Moved => c"lost_moved",
        Reason::Rebound => c"lost_rebound",
        Reason::Released => c"lost_released",
        Reason::Silent => c"lost_silent",
    }
}

/// How long ago this was, ms; 0: there is none.
fn since(first: Option<i64>, now: i64) -> u64 {
    let ago = first.map_or(0, |first| now.saturating_sub(first));
    u64::try_from(ago).unwrap_or(0)
}
