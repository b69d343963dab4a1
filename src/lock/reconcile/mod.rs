//! What was known of a key is brought in line with what it is.
//!
//! The keyspace is the only truth about who holds a lock. Whoever needs to know looks
//! ([`read`]): what is found is compared with what was known ([`diff`]), what differs is
//! applied in one place ([`apply`]), and it is looked again. An event of a key is a hint:
//! it makes us look, and says why a key that is gone went ([`due`]).

mod apply;
mod cause;
mod diff;
mod due;
mod merge;
mod over;
mod readers;
mod revive;

pub use cause::Cause;
pub use diff::is_left_over;
pub use due::{attend, end_readers, expire};
pub use over::forsake;
pub use readers::{expire_reader, keeps_readers_out, others, shorten, stop_reading, sweep};

use crate::lock::freed::turn_was_used;
use crate::lock::table::{Entry, Hold};
use crate::lock::{Decision, Foreign, Key, Kind, Look, Owner};
use over::Over;

/// A look that has changed something is followed by another; no key needs more
/// than a few, whatever somebody has made of it.
const MOST_LOOKS: u32 = 16;

/// The key as `owner` sees it, after all that was heard of it and all that was found.
/// The queue of the key is left for later.
pub fn read(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    attend(d, key);
    bring_in_line(d, key, owner, None).0
}

/// The same for a key of which this was heard; and what ended by it.
fn bring_in_line(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    heard: Option<Cause>,
) -> (Look, Over) {
    let mut heard = heard;
    let mut over = Over::default();
    for _ in 0..MOST_LOOKS {
        let found = d.ks.look(key, owner);
        if found.kind != Kind::Free {
            turn_was_used(d, key);
        }
        let known = d.core.locks.get(key);
        let change = diff::diff(known, owner, &found, heard.take(), d.now);
        let again = change.is_some_and(|change| {
            let at = apply::At { key, owner };
            apply::apply(d, at, &found, change, &mut over)
        });
        if !again {
            return (as_lock(d, key, found), over);
        }
    }
    (d.ks.look(key, owner), over)
}

/// A hash with a field `mode` that is somebody's data is no lock.
fn as_lock(d: &Decision<'_>, key: &Key, found: Look) -> Look {
    let is_known = || d.core.locks.get(key).map_or(0, Entry::fields) == found.fields;
    match found.kind {
        Kind::ReadWrite(_) if found.fields == 0 || !is_known() => Look {
            kind: Kind::Foreign(Foreign::OtherHash),
            ..found
        },
        _ => found,
    }
}

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
    let known = d.core.locks.get(key).is_some_and(Entry::is_held);
    if found.kind == Kind::Plain && !known {
        apply::learn_plain(d, key, &found);
    }
}

/// A plain lock that was tried in vain, as it was found.
pub fn found_held(d: &mut Decision<'_>, key: &Key, found: &Look) {
    if !d.core.locks.get(key).is_some_and(Entry::is_held) {
        apply::learn_plain(d, key, found);
    }
    d.core.locks.set_deadline(key, found.expires);
}

/// As [`know_holder`], for an owner that has it for certain.
pub fn know_plain(d: &mut Decision<'_>, key: &Key, owner: &Owner, found: &Look) {
    if found.kind == Kind::Plain && d.core.locks.hold(key, owner).is_none() {
        d.core.locks.replace_plain(key, Hold::found(owner.clone()));
    }
}
