//! What was heard of a key, and a lease whose end has come.

use super::apply::{bring_in_line, bring_in_line_to_release};
use super::diff::diff;
use super::judge::judge;
use super::over::drop_holders;
use super::parts::read_parts;
use super::{Cause, Over};
use crate::lock::kind::read_write::expire::{expire_dead, expire_reader};
use crate::lock::table::{Entry, Shared, SharedKind};
use crate::lock::{
    deadlock, head, leaving, watchdog, Decision, Key, Kind, Lease, Look, Now, Owner, Reason,
    WakeTarget,
};

/// Redis 8.2 says that a hash is deleted whose last field has run out, and deletes it
/// after that: it is looked at once more.
const NOT_YET_GONE_MS: i64 = 1;

/// So many owners of a lock whose own lease is over leave it in one go.
const MOST_OVER: usize = 256;

/// The key as `owner` sees it, after all that was heard of it and all that was found.
/// The queue of the key is left for later.
pub fn read(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    attend(d, key);
    bring_in_line(d, key, owner, None).0
}

/// The same for an owner that is to release the lock.
pub fn read_to_release(d: &mut Decision<'_>, key: &Key, owner: &[u8]) -> Look {
    attend(d, key);
    bring_in_line_to_release(d, key, owner)
}

/// Reads more of those who hold permits of a lock, if not all are read.
pub fn read_on(d: &mut Decision<'_>, key: &Key) {
    read(d, key, &[]);
    if d.core.pools.progress(key).is_some() {
        let read = read_parts(d, key, &mut Over::default());
        expire_dead(d, key, read);
    }
}

/// Whether the key is not as it is known, as its owner sees it, before the lease ends that it
/// is known to have. Nothing is done about it.
pub fn differs(d: &mut Decision<'_>, key: &Key, owner: &Owner) -> bool {
    let ends = d.core.locks.lease_end(key, owner);
    if ends.is_some_and(|at| d.now.may_be_past(at)) {
        return false;
    }
    let known = d.core.locks.get(key);
    let beside = known.map(|entry| entry.beside(None)).unwrap_or_default();
    let found = judge(known, owner, d.ks.look_with_hint(key, owner, beside));
    let kind = d.kinds.of(&found);
    diff(kind, known, owner, &found, None, d.now).is_some()
}

/// Takes into account what was heard of a key.
pub fn attend(d: &mut Decision<'_>, key: &Key) {
    let is_exchanged = d.core.heard.is_exchanged(key.db);
    let heard = d.core.heard.take(&mut d.core.locks, key);
    if is_exchanged {
        // Or it would not be looked at where nothing else is known of it.
        leaving::know_whether_any_waits(d.core, key);
    }
    if let Some((cause, readers)) = heard {
        if let Some(cause) = cause {
            review_key(d, key, cause);
        }
        for (owner, cause) in &readers {
            review_reader(d, key, owner, *cause);
        }
    }
    if is_exchanged {
        leaving::know_who_waits(d.core, key);
    }
}

/// Deadlines of these keys have passed: their own, or those of readers. All that
/// has ended is ended before any of it is handed on. Whether that was so much that
/// some are left, and due still.
pub fn expire(d: &mut Decision<'_>, keys: &[Key]) -> bool {
    watchdog::begin_anew(d);
    d.as_many(keys, expire_one) < keys.len()
}

fn expire_one(d: &mut Decision<'_>, key: &Key) {
    attend(d, key);
    if !end_leases(d, key) {
        review_key(d, key, Cause::Unknown);
    } else if d
        .core
        .locks
        .shared(key)
        .is_some_and(|shared| has_over(shared, d.now))
    {
        return;
    }
    // Whatever is there has not ended: it is not due again and again.
    let entry = d.core.locks.get(key);
    let deadline = entry.and_then(|entry| entry.deadline);
    let is_foreign = entry.is_some_and(|entry| entry.foreign);
    // Till then the server can take a lease to run that is over by our clock.
    if deadline.is_some_and(|at| d.now.must_be_past(at)) {
        let expires = d.ks.look(key, &[]).expires;
        let to = expires.filter(|at| *at >= d.now.wall_ms());
        if is_foreign {
            d.core.locks.set_foreign_deadline(key, to);
        } else {
            d.core.locks.set_deadline(key, to);
        }
        d.core.locks.tidy(key);
    }
}

/// Some whose own lease is over leave; whether there were any. Where there are very many the
/// rest is due still.
pub fn end_leases(d: &mut Decision<'_>, key: &Key) -> bool {
    let now = d.now.wall_ms();
    let shared = d.core.locks.shared(key);
    let kind = shared.map(|shared| shared.kind);
    let over = shared.map_or_else(Vec::new, |shared| shared.over(now, MOST_OVER));
    let mut ran_out = false;
    for owner in &over {
        attend(d, key);
        ran_out |= bring_in_line(d, key, owner, None).1.ran_out;
    }
    match kind.filter(|_| !over.is_empty()) {
        None => return false,
        Some(SharedKind::ReadWrite) => readers_left(d, key),
        Some(SharedKind::Permits(_)) => {
            // The key has ended with the last of those who had some.
            if ran_out && d.ks.look(key, &[]).is_free() {
                d.left_free(key, WakeTarget::One);
            }
        }
    }
    true
}

/// Readers have left by no request of theirs.
fn readers_left(d: &mut Decision<'_>, key: &Key) {
    if d.ks.look(key, &[]).is_free() && !d.is_woken(key) {
        d.left_free(key, WakeTarget::OneShared);
    }
    d.look_later(key);
}

fn has_over(shared: &Shared, now: Now) -> bool {
    !shared.over(now.wall_ms(), 1).is_empty()
}

/// Looks at a key again that may have changed without rlock's doing.
fn review_key(d: &mut Decision<'_>, key: &Key, cause: Cause) {
    if cause == Cause::Demoted {
        return drop_holders(d, key, Reason::Demoted);
    }
    if cause > Cause::Unknown {
        d.turn_was_used(key);
    }
    let entry = d.core.locks.get(key);
    if entry.is_none() && !d.core.subscribers.is_turn(key) {
        return;
    }
    // As the holder of a plain lock sees it: it may be another's by now.
    let plain = entry.and_then(|entry| Some(entry.plain()?.owner.clone()));
    let shared = entry.and_then(Entry::shared);
    let whom = shared.map_or(WakeTarget::One, Shared::whom);
    let presumed = entry.and_then(Entry::presumed);
    let owner = plain.as_deref().unwrap_or_default();
    let (found, Over { revived, ran_out }) = bring_in_line(d, key, owner, Some(cause));
    if found.is_free() && ran_out && !revived {
        match presumed {
            Some(whom) => d.presumed_left(key, whom),
            None => d.left_free(key, whom),
        }
    }
    if head::is_waited_for(d.core, key) {
        // Waiters stay until the name is free; the holder has lost the lock.
        if found.kind.is_foreign() {
            let soon = (cause > Cause::Unknown).then(|| d.now.deadline(NOT_YET_GONE_MS));
            let next = soon.into_iter().chain(found.expires).min();
            d.core.locks.set_foreign_deadline(key, next);
        }
        judge_holders(d, key);
        if found.kind != Kind::Plain {
            d.look_later(key);
        }
    }
    d.core.locks.tidy(key);
}

/// Somebody who waits may have become a holder by another way than ours: what is known
/// may have come here with the key.
fn judge_holders(d: &mut Decision<'_>, key: &Key) {
    if d.core.locks.are_many(key) {
        // Alone a key comes without these: they are read anew, one by one. With its database it
        // keeps them, and who stands last waits for all of them and for all others here.
        let last = d.core.queues.line(key).queue.last();
        if let Some((_, id)) = last.filter(|_| d.core.heard.is_exchanged(key.db)) {
            deadlock::suspect(d.core, id);
        }
        return;
    }
    let holds = d.core.locks.get(key).into_iter().flat_map(Entry::holds);
    let owners: Vec<Owner> = holds.map(|hold| hold.owner.clone()).collect();
    for owner in owners {
        d.joined(key, &owner);
    }
}

/// Something happened to a lease key of a reader.
fn review_reader(d: &mut Decision<'_>, key: &Key, owner: &Owner, cause: Cause) {
    if !d.core.locks.knows_reader(key.db, &key.name, owner) {
        return;
    }
    let found = d.ks.look(key, owner);
    let by_hand = matches!(cause, Cause::Removed | Cause::Evicted);
    let is_gone = found.holds > 0 && found.lease == Lease::Gone;
    // Or the lock has run out since.
    if found.kind.is_read_write() && is_gone || found.is_free() && by_hand {
        expire_reader(d, key, owner, cause);
    }
    read(d, key, owner);
    readers_left(d, key);
}
