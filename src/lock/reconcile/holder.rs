//! Whose a plain lock is.

use super::apply::learn_plain;
use super::due::read;
use crate::lock::table::{Entry, Hold};
use crate::lock::{Decision, Key, Kind, Look, Owner};

/// Whose lock it is that is waited for or was tried in vain, be it found a moment ago,
/// after a restart, or one that a script took. A plain one is to be known: somebody may
/// make a read/write lock of it, and its field would be taken for that of a dead reader.
pub fn know_holder(d: &mut Decision<'_>, key: &Key) {
    let entry = d.core.locks.get(key);
    let plain = entry.and_then(|entry| Some(entry.plain()?.owner.clone()));
    if plain.is_none() && entry.is_some_and(Entry::is_held) {
        return;
    }
    let found = read(d, key, plain.as_deref().unwrap_or_default());
    if found.kind == Kind::Plain {
        learn_plain(d, key, &found);
    }
}

/// As [`know_holder`], for an owner that has it for certain.
pub fn know_plain(d: &mut Decision<'_>, key: &Key, owner: &Owner, found: &Look) {
    if found.kind == Kind::Plain && d.core.locks.hold(key, owner).is_none() {
        d.core.locks.set_plain(key, Hold::found(owner.clone()));
    }
}
