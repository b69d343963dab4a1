//! Who holds a read/write lock.

use super::due::read;
use crate::lock::{Decision, Key};

/// Whether readers are kept out: by a writer, or by a plain hold that somebody
/// made a read/write lock of.
pub fn keeps_readers_out(d: &mut Decision<'_>, key: &Key) -> bool {
    let mut asked = None;
    loop {
        let entry = d.core.locks.get(key);
        let plain = entry.and_then(|entry| Some(&entry.plain()?.owner));
        let writer = entry.and_then(|entry| entry.shared()?.writer());
        let Some(owner) = plain.or(writer).cloned() else {
            return false;
        };
        // Another writer may have its place in the hash.
        if asked.as_ref() == Some(&owner) {
            return true;
        }
        let is_plain = plain.is_some();
        let found = read(d, key, &owner);
        if found.writes > 0 || (is_plain && found.holds > 0) {
            return true;
        }
        asked = Some(owner);
    }
}

/// Shortens the hash to the reader that stays longest, after one has left.
pub fn shorten(d: &mut Decision<'_>, key: &Key) {
    let Some(end) = d.ks.look(key, &[]).expires else {
        return;
    };
    // A plain hold that somebody put readers beside lasts as long as the hash.
    let entry = d.core.locks.get(key);
    if entry.is_some_and(|entry| entry.plain().is_some()) {
        return;
    }
    let mut to = end;
    d.core.locks.change_shared(key, |shared| {
        if shared.writer().is_none() {
            to = shared.last_end().map_or(end, |last| last.min(end));
            shared.expires = Some(to);
        }
    });
    d.expire_at(key, Some(end), Some(to));
}
