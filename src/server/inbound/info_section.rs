//! The section `rlock` of INFO: what has happened since the module was loaded, and
//! what is under way.

use std::ffi::CStr;

use crate::server::shell::{ServerShell, SHELL};
use crate::server::state::clock;
use crate::server::state::Bar;
use crate::server::sys::{self, Callback, InfoValue, MachineUs, OnInfo};
use crate::version;

pub struct InfoSection;

impl OnInfo for InfoSection {
    fn fields(here: Callback<'_>) -> Option<Vec<(&'static CStr, InfoValue)>> {
        let found = SHELL.with(here, |shell| {
            let mut stats = shell.core.ask(|core| core.stats(clock::now()))?;
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
            (c"version", InfoValue::Text(version::TEXT)),
            (c"build", InfoValue::Text(version::BUILD)),
            (c"may_grant", InfoValue::Number(u64::from(bar.is_none()))),
            (
                c"may_grant_why",
                InfoValue::Text(bar.map_or("ok", Bar::name)),
            ),
        ];
        fields.extend(
            stats
                .into_iter()
                .map(|(name, value)| (name, InfoValue::Number(value))),
        );
        Some(fields)
    }
}

/// What keeps this server from granting. Its role is known by the server's events; the rest is
/// looked at with each beat.
fn bar(shell: &ServerShell) -> Option<Bar> {
    let looked = shell.permission.ask(MachineUs::now());
    let situation = &shell.situation;
    match (situation.loading.get(), situation.master.get()) {
        (true, _) => Some(Bar::Loading),
        (_, false) => Some(Bar::Replica),
        _ => looked.filter(|bar| !matches!(bar, Bar::Loading | Bar::Replica)),
    }
}
