//! The section `rlock` of INFO: what has happened since the module was loaded, and
//! what is under way.

use std::ffi::CStr;

use crate::server::shell::{Shell, SHELL};
use crate::server::state::clock;
use crate::server::state::Bar;
use crate::server::sys::{self, Callback, MachineUs, OnInfo, Said};
use crate::version;

pub struct InfoSection;

impl OnInfo for InfoSection {
    fn fields(here: Callback<'_>) -> Option<Vec<(&'static CStr, Said)>> {
        let found = SHELL.with(here, |shell| {
            let mut stats = shell.locks.ask(|core| core.stats(clock::now()))?;
            stats.extend([
                (c"recovery_running", u64::from(shell.recovery.is_walking())),
                (c"recovery_scanned", shell.recovery.scanned.get()),
                (c"subscribers_seen", u64::from(shell.unpublished.ask())),
                (c"memory_bytes", sys::taken()),
                (c"faults", u64::from(sys::faults())),
            ]);
            Some((bar(shell), stats))
        });
        let (bar, stats) = found.flatten()?;
        let mut fields = vec![
            (c"version", Said::Text(version::TEXT)),
            (c"build", Said::Text(version::BUILD)),
            (c"may_grant", Said::Number(u64::from(bar.is_none()))),
            (c"may_grant_why", Said::Text(bar.map_or("ok", Bar::name))),
        ];
        fields.extend(
            stats
                .into_iter()
                .map(|(name, value)| (name, Said::Number(value))),
        );
        Some(fields)
    }
}

/// What keeps this server from granting. Its role it has told us; the rest is looked at beats.
fn bar(shell: &Shell) -> Option<Bar> {
    let looked = shell.permission.ask(MachineUs::now());
    let situation = &shell.situation;
    match (situation.loading.get(), situation.master.get()) {
        (true, _) => Some(Bar::Loading),
        (_, false) => Some(Bar::Replica),
        _ => looked.filter(|bar| !matches!(bar, Bar::Loading | Bar::Replica)),
    }
}
