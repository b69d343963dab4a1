//! The section `rlock` of INFO: what has happened since the module was loaded, and
//! what is under way.

use std::ffi::CStr;

use crate::lock::Core;
use crate::server::shell::SHELL;
use crate::server::sys::{MainThread, OnInfo};

pub struct InfoSection;

impl OnInfo for InfoSection {
    fn fields(here: MainThread<'_>) -> Option<Vec<(&'static CStr, u64)>> {
        let stats = SHELL.with(here, |shell| shell.locks.ask(Core::stats));
        let stats = stats.flatten()?;
        Some(vec![
            (c"acquired", stats.acquired),
            (c"contended", stats.contended),
            (c"granted_after_wait", stats.granted),
            (c"timed_out", stats.timed_out),
            (c"released", stats.released),
            (c"renewed", stats.renewed),
            (c"expired", stats.expired),
            (c"forced", stats.forced),
            (c"evicted", stats.evicted),
            (c"deadlocks_refused", stats.deadlocks),
            (c"grants_taken_back", stats.taken_back),
            (c"redisson_turns", stats.turns),
            (c"redisson_turns_used", stats.turns_used),
            (c"waiting", stats.waiting),
            (c"watchdog_holds", stats.watched),
            (c"wait_p50_us", stats.wait_p50_us),
            (c"wait_p99_us", stats.wait_p99_us),
            (c"wait_max_us", stats.wait_max_us),
        ])
    }
}
