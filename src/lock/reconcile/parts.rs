//! Those who hold a lock that several may hold are read in parts, as far as they are not known,
//! for there may be very many.

use super::over;
use super::{Cause, Over};
use crate::lock::pools::{Progress, Seen};
use crate::lock::table::Entry;
use crate::lock::{Decision, Foreign, Key, Kind, Look, Owner};

/// So many parts are read by one look: enough for all who hold a small pool.
const PARTS: usize = 3;

/// Of readers, each of whom has lease keys to look at, and very many of whom may be dead.
const PARTS_OF_READERS: usize = 1;

/// So many who are known are looked at in one part.
const KNOWN: usize = 64;

/// A hash in which some field was found that is no hold is no lock while it is there.
pub fn judge(d: &mut Decision<'_>, key: &Key, found: Look) -> Look {
    if !found.kind.is_for_several() {
        d.core.pools.forget(key);
        return found;
    }
    let Some(field) = d.core.pools.wrong(key).cloned() else {
        return found;
    };
    if !d.ks.is_wrong(key, &field) {
        d.core.pools.forget(key);
        return found;
    }
    let kind = Kind::Foreign(Foreign::OtherHash);
    Look { kind, ..found }
}

/// What comes of reading some.
#[derive(Debug, Default)]
pub struct Parts {
    /// Something was written, or the hash turned out to be no lock: another look is due.
    pub again: bool,
    /// Readers whose lease keys are gone: they are to be removed.
    pub dead: Vec<Owner>,
}

impl Parts {
    pub fn add(&mut self, other: Self) {
        self.again |= other.again;
        self.dead.extend(other.dead);
    }
}

/// So many fields are read at once.
const AT_ONCE: usize = 256;

/// Whether those who hold it are not read at once.
pub fn are_many(d: &Decision<'_>, key: &Key, found: &Look) -> bool {
    found.fields > AT_ONCE || d.core.locks.are_many(key) || d.core.pools.progress(key).is_some()
}

/// Reads some parts.
pub fn read_parts(d: &mut Decision<'_>, key: &Key, over: &mut Over) -> Parts {
    let (before, mut dead) = (d.size(), Vec::new());
    let parts = match d.core.pools.seen(key) {
        Some(Seen::Unknown(_)) => PARTS_OF_READERS,
        Some(Seen::Out(_)) | None => PARTS,
    };
    for _ in 0..parts {
        let progress = d.core.pools.progress(key).cloned();
        let wrong = match progress {
            None => break,
            Some(Progress::Fields(cursor)) => read_fields(d, key, cursor, &mut dead),
            Some(Progress::Known(behind)) => {
                look_at_known(d, key, behind, &mut dead);
                None
            }
        };
        if let Some(wrong) = wrong {
            if d.core.locks.get(key).is_some_and(Entry::is_held) {
                over::end(d, key, Cause::Overwritten, false, over);
            }
            d.core.pools.is_wrong(key, wrong);
            return Parts { again: true, dead };
        }
    }
    d.look_later(key);
    let again = d.size() != before;
    Parts { again, dead }
}

/// Reads some fields of the hash; one of them that is no hold.
fn read_fields(
    d: &mut Decision<'_>,
    key: &Key,
    cursor: u64,
    dead: &mut Vec<Owner>,
) -> Option<Owner> {
    let part = d.ks.some_fields(key, cursor);
    if part.wrong.is_some() {
        return part.wrong;
    }
    for holder in part.holders {
        let kind = d.kinds.in_mode(holder.mode);
        if !kind.learn_one(d, key, holder, dead) {
            break;
        }
    }
    let next = match part.next {
        Some(cursor) => Progress::Fields(cursor),
        None => Progress::Known(None),
    };
    go_on(d, key, next);
    None
}

/// Looks whether some who are known are there still, as far as more are known than there are
/// fields.
fn look_at_known(d: &mut Decision<'_>, key: &Key, behind: Option<Owner>, dead: &mut Vec<Owner>) {
    let fields = d.ks.look(key, &[]).fields;
    let entry = d.core.locks.get(key);
    let shared = entry.filter(|entry| entry.fields() > fields);
    let shared = shared.and_then(Entry::shared).into_iter();
    let some = shared.flat_map(|shared| shared.holds_behind(behind.as_deref()));
    let some = some.take(KNOWN).map(|hold| hold.owner.clone());
    let some: Vec<Owner> = some.collect();
    for owner in &some {
        let found = d.ks.look(key, owner);
        let Some(kind) = d.kinds.of(&found) else {
            break;
        };
        kind.look_again(d, key, owner, &found, dead);
    }
    match some.last() {
        Some(last) => go_on(d, key, Progress::Known(Some(last.clone()))),
        None => all_read(d, key),
    }
}

/// Those who hold the lock are read so far, if it is still one.
fn go_on(d: &mut Decision<'_>, key: &Key, progress: Progress) {
    let found = d.ks.look(key, &[]);
    let kind = d.kinds.of(&found);
    let seen = kind.and_then(|kind| kind.seen(d, key, &found));
    match seen {
        Some(seen) => d.core.pools.put(key, progress, seen),
        None => d.core.pools.are_read(key),
    }
}

fn all_read(d: &mut Decision<'_>, key: &Key) {
    d.core.pools.are_read(key);
    let found = d.ks.look(key, &[]);
    if let Some(kind) = d.kinds.of(&found) {
        kind.all_read(d, key, &found);
    }
}
