//! What was known of a key against what was found: a pure function.

use super::{Cause, Change};
use crate::lock::kind::lock_kind::LockKind;
use crate::lock::kind::presumption;
use crate::lock::table::Entry;
use crate::lock::{Look, Now};

/// Compares what is known with what this owner found, of a lock of that kind if it is one.
/// `heard`: that something happened to the key, and what. `None`: nothing has to change.
pub fn diff<D>(
    kind: Option<&dyn LockKind<D>>,
    known: Option<&Entry>,
    owner: &[u8],
    found: &Look,
    heard: Option<Cause>,
    now: Now,
) -> Option<Change> {
    let Some(entry) = known.filter(|entry| !entry.is_presumed()) else {
        return diff_unknown(kind, known, found, heard);
    };
    let any = entry.is_held() || entry.deadline.is_some();
    let cause = heard.unwrap_or(Cause::Unknown);
    let over = |cause, free| any.then_some(Change::Over { cause, free });
    match kind {
        None if found.is_free() => over(cause.or_seen(found), true),
        // SET over a lock is no event that rlock hears everywhere.
        None if entry.foreign => None,
        None => over(cause.max(Cause::Overwritten), false),
        // Gone and there again: another hold, be it the same owner's.
        Some(_) if cause > Cause::Unknown && any => over(cause.max(Cause::Removed), false),
        Some(kind) if entry.is_held() && !kind.is_known(entry) => Some(Change::replaced(heard)),
        Some(kind) if found.fields == 0 => {
            let is_emptied = kind.is_emptied(entry.is_held());
            is_emptied.then_some(Change::Emptied)
        }
        Some(kind) => kind.diff(entry, owner, found, heard, now),
    }
}

/// Of a key of which no more is known than that it could be a lock, if that.
fn diff_unknown<D>(
    kind: Option<&dyn LockKind<D>>,
    presumed: Option<&Entry>,
    found: &Look,
    heard: Option<Cause>,
) -> Option<Change> {
    if found.fields == 0 && kind.is_some_and(|kind| kind.is_emptied(false)) {
        return Some(Change::Emptied);
    }
    let held = kind.is_some() && found.fields > 0;
    // What is heard of a key is no reason to read all who hold it.
    if held && (presumed.is_none() || heard.is_none()) {
        return Some(Change::Holders);
    }
    let entry = presumed?;
    let known = entry.presumed().zip(entry.deadline);
    let is_same = known.is_some() && known == presumption(found);
    (!is_same).then(|| Change::Presumed(heard.unwrap_or(Cause::Unknown)))
}
