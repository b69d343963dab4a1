//! Whose a plain lock is.

use super::due::read;
use crate::lock::table::Entry;
use crate::lock::{Decision, Key};

/// Looks whose lock it is that is waited for, as its known holder sees it: it may be
/// another's by now.
pub fn know_holder(d: &mut Decision<'_>, key: &Key) {
    let entry = d.core.locks.get(key);
    let plain = entry.and_then(|entry| Some(entry.plain()?.owner.clone()));
    if plain.is_none() && entry.is_some_and(Entry::is_held) {
        return;
    }
    read(d, key, plain.as_deref().unwrap_or_default());
}
