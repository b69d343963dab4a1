//! Who holds a read/write lock is read.

use super::expire::{expire_dead, expire_reader};
use super::learn_one::{learn_one, unknown};
use super::merge::merge;
use crate::lock::pools::{Progress, Seen};
use crate::lock::reconcile::{self, Cause, Over, Parts};
use crate::lock::table::Entry;
use crate::lock::{watchdog, Decision, Key, Look, Owner, Reason};

/// Whether another look is due.
pub fn learn(d: &mut Decision<'_>, key: &Key, owner: &[u8], found: &Look, over: &mut Over) -> bool {
    if !reconcile::are_many(d, key, found) {
        return learn_all(d, key, found, over);
    }
    let read = learn_some(d, key, owner, found, over);
    expire_dead(d, key, read)
}

/// Reads all holders of a read/write lock. Readers whose lease keys are gone are removed,
/// and so is what was known and is not there.
fn learn_all(d: &mut Decision<'_>, key: &Key, found: &Look, over: &mut Over) -> bool {
    let holders = d.ks.holders(key);
    let known = d.core.locks.get(key);
    if holders.len() != found.fields {
        // No lock, or no more: a field is no count of holds.
        if known.is_some_and(Entry::is_held) {
            reconcile::end(d, key, Cause::Removed, false, over);
        }
        return false;
    }
    let merged = merge(known, holders, found, d.now);
    if merged.shared.is_half() {
        d.core.away.look_again(key);
    }
    d.core.locks.set_shared(key, merged.shared);
    for (owner, mode) in merged.fewer {
        watchdog::on_lost_in(d, key, &owner, mode, Reason::Deleted);
    }
    for hold in merged.vanished {
        let end = hold.end(None);
        reconcile::hold_ended(d, key, hold, Cause::Unknown, end);
    }
    if merged.plain_is_gone {
        if let Some(hold) = d.core.locks.take_plain(key) {
            watchdog::on_lost(d, key, hold, Reason::Deleted);
        }
    }
    let wrote = !merged.dead.is_empty();
    for owner in merged.dead {
        expire_reader(d, key, &owner, Cause::Unknown);
    }
    d.core.locks.tidy(key);
    for owner in merged.joined {
        d.joined(key, &owner);
    }
    d.look_later(key);
    wrote
}

/// Others have changed the hash, or it is not known who holds the lock: the owner that looks is
/// taken in, and all are read, some of them now. Whether another look is due.
fn learn_some(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    found: &Look,
    over: &mut Over,
) -> Parts {
    let before = d.size();
    // As it was, but for what is done here, and it is read on by the timer.
    let as_seen = d.core.pools.seen(key) == Some(Seen::Unknown(unknown(d, key, found)));
    let mut read = Parts::default();
    if !owner.is_empty() {
        let owner = Owner::from(owner);
        let is_dead = learn_one(d, key, &owner, found);
        read.dead.extend(Some(owner).filter(|_| is_dead));
    }
    let left = unknown(d, key, found);
    if as_seen || left == 0 {
        if left == 0 {
            d.core.pools.are_read(key);
        }
        read.again = d.size() != before;
        return read;
    }
    let begin = match left > 0 {
        true => Progress::Fields(0),
        false => Progress::Known(None),
    };
    d.core.pools.put(key, begin, Seen::Unknown(left));
    read.add(reconcile::read_parts(d, key, over));
    read.again |= d.size() != before;
    read
}
