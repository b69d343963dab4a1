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
        stats.flatten()
    }
}
