//! Whether a read/write lock keeps readers out.

use super::learn_one::any_unread;
use crate::lock::reconcile::read;
use crate::lock::table::Entry;
use crate::lock::{Decision, Key, Kind, Mode};

/// Whether readers are kept out: by a writer, or by a plain hold that somebody
/// made a read/write lock of.
pub fn keeps_readers_out(d: &mut Decision<'_>, key: &Key) -> bool {
    let mut asked = None;
    loop {
        let entry = d.core.locks.get(key);
        let plain = entry.and_then(|entry| Some(&entry.plain()?.owner));
        let writer = entry.and_then(|entry| entry.shared()?.writer());
        let Some(owner) = plain.or(writer).cloned() else {
            return may_keep_out(d, key);
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

/// Of a lock whose holders are read: some may write, or it is not known yet whether anybody is there.
fn may_keep_out(d: &mut Decision<'_>, key: &Key) -> bool {
    any_unread(d, key) && {
        let writes = d.ks.look(key, &[]).kind == Kind::ReadWrite(Mode::Write);
        writes || !d.core.locks.get(key).is_some_and(Entry::is_held)
    }
}
