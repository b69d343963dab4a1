//! What operators are told of the whole, in the section `rlock` of INFO.

use std::ffi::CStr;

use super::Core;

impl Core {
    /// What has happened since the module was loaded, and what is under way.
    pub fn stats(&self) -> Vec<(&'static CStr, u64)> {
        let (counters, waits) = (&self.counters, &self.counters.waits);
        let waiting = u64::try_from(self.queues.len()).unwrap_or(u64::MAX);
        vec![
            (c"acquired", counters.acquired),
            (c"contended", counters.contended),
            (c"granted_after_wait", waits.count),
            (c"timed_out", counters.timed_out),
            (c"released", counters.released),
            (c"renewed", counters.renewed),
            (c"expired", counters.expired),
            (c"forced", counters.forced),
            (c"evicted", counters.evicted),
            (c"deadlocks_refused", counters.deadlocks),
            (c"grants_taken_back", counters.taken_back),
            (c"redisson_turns", counters.turns),
            (c"redisson_turns_used", counters.turns_used),
            (c"waiting", waiting),
            (c"watchdog_holds", self.watchdogs.count(&self.locks)),
            (c"wait_p50_us", waits.percentile(50)),
            (c"wait_p99_us", waits.percentile(99)),
            (c"wait_max_us", waits.longest_us),
        ]
    }
}
