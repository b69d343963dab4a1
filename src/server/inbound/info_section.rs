//! The section `rlock` of INFO: what has happened since the module was loaded, and
//! what is under way.

use std::ffi::CStr;

use crate::server::shell::SHELL;
use crate::server::state::clock;
use crate::server::sys::{self, Callback, OnInfo, Said};
use crate::version;

pub struct InfoSection;

impl OnInfo for InfoSection {
    fn fields(here: Callback<'_>) -> Option<Vec<(&'static CStr, Said)>> {
        let stats = SHELL.with(here, |shell| {
            let mut stats = shell.locks.ask(|core| core.stats(clock::now()))?;
            stats.extend([
                (c"stock_running", u64::from(shell.stock.is_walking())),
                (c"stock_scanned", shell.stock.scanned.get()),
                (c"subscribers_seen", u64::from(shell.unpublished.ask())),
                (c"memory_bytes", sys::taken()),
                (c"faults", u64::from(sys::faults())),
            ]);
            Some(stats)
        });
        let mut fields = vec![
            (c"version", Said::Text(version::TEXT)),
            (c"build", Said::Text(version::BUILD)),
        ];
        let stats = stats.flatten()?.into_iter();
        fields.extend(stats.map(|(name, value)| (name, Said::Number(value))));
        Some(fields)
    }
}
