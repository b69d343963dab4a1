//! The section `rlock` of INFO: what has happened since the module was loaded, and
//! what is under way.

use std::ffi::CStr;

use crate::server::shell::SHELL;
use crate::server::state::clock;
use crate::server::sys::{Callback, OnInfo};

pub struct InfoSection;

impl OnInfo for InfoSection {
    fn fields(here: Callback<'_>) -> Option<Vec<(&'static CStr, u64)>> {
        let stats = SHELL.with(here, |shell| {
            let mut stats = shell.locks.ask(|core| core.stats(clock::now()))?;
            stats.extend([
                (c"stock_running", u64::from(shell.stock.is_walking())),
                (c"stock_scanned", shell.stock.scanned.get()),
                (c"subscribers_seen", u64::from(shell.unpublished.ask())),
            ]);
            Some(stats)
        });
        stats.flatten()
    }
}
