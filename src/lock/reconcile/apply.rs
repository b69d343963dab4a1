//! Looks at a key, compares, changes what is known of it, and looks again: the one place
//! that does so. What changes can be a reader whose lease is over, and with it others.

use super::diff::diff;
use super::judge::{judge, why_no_lock};
use super::{over, parts};
use super::{Cause, Change, Over};
use crate::lock::kind::{presumption, FEW_FIELDS};
use crate::lock::table::Entry;
use crate::lock::{Decision, Foreign, Key, Kind, Look, Write};

/// A look that has changed something is followed by another; no key needs more
/// than a few, whatever somebody has made of it.
const MOST_LOOKS: u32 = 16;

/// The key as `owner` sees it, after all that was found. `heard`: that something happened
/// to the key, and what. Also how holds ended by it.
pub fn bring_in_line(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    heard: Option<Cause>,
) -> (Look, Over) {
    look_and_apply(d, key, owner, heard, false)
}

/// The same for an owner that is to release the lock: if it is known to hold it, it does not
/// matter when it ends.
pub fn bring_in_line_to_release(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    look_and_apply(d, key, owner, None, true).0
}

fn look_and_apply(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    mut heard: Option<Cause>,
    to_release: bool,
) -> (Look, Over) {
    let mut over = Over::default();
    for _ in 0..MOST_LOOKS {
        let known = d.core.locks.get(key);
        let releases = to_release.then_some(owner);
        let beside = known
            .map(|entry| entry.beside(releases))
            .unwrap_or_default();
        let found = judge(known, owner, d.ks.look_with_hint(key, owner, beside));
        if !found.is_free() {
            d.turn_was_used(key);
        }
        let found = parts::judge(d, key, found);
        let mut known = d.core.locks.get(key);
        if !d.core.rules.observes_all && may_be_another(known, &found) {
            d.core.locks.doubt(key);
            known = d.core.locks.get(key);
        }
        let told = heard.take();
        let kind = d.kinds.of(&found);
        let change = diff(kind, known, owner, &found, told, d.now);
        let mut apply = |change| apply(d, key, owner, (&found, told), change, &mut over);
        let again = change.is_some_and(&mut apply);
        if !again {
            return (as_lock(d, key, found), over);
        }
    }
    let found = d.ks.look(key, owner);
    (judge(d.core.locks.get(key), owner, found), over)
}

/// Whether a plain lock that is only held may have gone and come again, unheard: then it ends
/// at another moment, and its owner holds it once. One without a TTL nobody takes; somebody has
/// PERSISTed it.
fn may_be_another(known: Option<&Entry>, found: &Look) -> bool {
    known.is_some_and(|entry| {
        let is_its_end = found.expires.is_none() || entry.deadline == found.expires;
        let is_the_same = found.kind == Kind::Plain && (is_its_end || found.holds > 1);
        entry.plain().is_some() && !entry.is_heard() && !is_the_same
    })
}

/// What looked like a lock and is somebody's data is none.
fn as_lock(d: &mut Decision<'_>, key: &Key, found: Look) -> Look {
    let kind = d.kinds.of(&found);
    let why = match found.kind {
        Kind::Foreign(Foreign::NoTtl) if found.fields <= FEW_FIELDS => {
            why_no_lock(&found, d.ks.holders(key).len())
        }
        _ if kind.is_some_and(|kind| !kind.is_lock(d, key, &found)) => Foreign::OtherHash,
        _ => return found,
    };
    let kind = Kind::Foreign(why);
    Look { kind, ..found }
}

/// Applies a change. Whether something was written, or is unknown now, so that another
/// look is due.
fn apply(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    found: (&Look, Option<Cause>),
    change: Change,
    over: &mut Over,
) -> bool {
    let (look, _) = found;
    let kind = d.kinds.of(look);
    match (change, kind) {
        (Change::Over { cause, free }, _) => {
            over::end(d, key, cause, free, over);
            over.revived || !free
        }
        (Change::Emptied, _) => {
            d.write(key, Write::Delete);
            over::end(d, key, Cause::Unknown, true, over);
            true
        }
        (Change::Presumed(cause), _) => {
            let end = d.core.locks.get(key).and_then(|entry| entry.deadline);
            let free = look.is_free();
            over.ran_out = free && cause.or_seen(look).event(end, d.now).is_some();
            d.core.locks.set_presumed(key, presumption(look));
            false
        }
        (Change::OwnerOver, Some(kind)) => {
            kind.end_own_lease(d, key, owner, look);
            true
        }
        (Change::Holders, Some(kind)) => kind.learn(d, key, owner, found, over),
        (Change::Ends(its), Some(kind)) => kind.learn_end(d, key, owner, look, its),
        // Of what is no lock nothing else changes.
        (Change::OwnerOver | Change::Holders | Change::Ends(_), None) => false,
    }
}
