//! Those who hold a lock that several may hold are read in parts, as far as they are not known,
//! for there may be very many.

use super::over::{self, Over};
use super::{pool, reader, Cause};
use crate::lock::pools::{Progress, Seen};
use crate::lock::table::{Entry, Party};
use crate::lock::{Decision, Foreign, Key, Kind, Look, Mode, Owner, Pool};

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
pub struct Read {
    /// Something was written, or the hash turned out to be no lock: another look is due.
    pub again: bool,
    /// Readers whose lease keys are gone: they are to be removed.
    pub dead: Vec<Owner>,
}

impl Read {
    fn again(again: bool) -> Self {
        let dead = Vec::new();
        Self { again, dead }
    }

    fn add(&mut self, other: Self) {
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

/// Others have changed the hash, or it is not known who holds the lock: the owner that looks is
/// taken in, and all are read, some of them now. Whether another look is due.
pub fn learn_readers(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    found: &Look,
    over: &mut Over,
) -> Read {
    let before = d.size();
    // As it was, but for what is done here, and it is read on by the timer.
    let as_seen = d.core.pools.seen(key) == Some(Seen::Unknown(reader::unknown(d, key, found)));
    let mut read = Read::default();
    if !owner.is_empty() {
        let owner = Owner::from(owner);
        let is_dead = reader::learn_one(d, key, &owner, found);
        read.dead.extend(Some(owner).filter(|_| is_dead));
    }
    let left = reader::unknown(d, key, found);
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
    read.add(read_parts(d, key, over));
    read.again |= d.size() != before;
    read
}

/// It is not known who holds these permits, or others have changed the hash: those who hold
/// them are read, all or some of them. Whether something was written.
pub fn learn_permits(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    (found, pool): (&Look, Pool),
    heard: bool,
    over: &mut Over,
) -> Read {
    let known = d.core.locks.shared(key).and_then(|shared| shared.pool);
    let known = known.or_else(|| match d.core.pools.seen(key) {
        Some(Seen::Out(pool)) => Some(pool),
        Some(Seen::Unknown(_)) | None => None,
    });
    let before = d.size();
    if found.holds > 0 {
        pool::take_in_own(d, key, owner, found);
    } else if let Some(party) = d.core.locks.party(key, owner).cloned() {
        pool::vanish(d, key, &party);
        if known == Some(pool) {
            pool::count(d, key, party.holds.saturating_neg());
        }
    }
    // As it was, but for what is done here, and it is read on by the timer.
    let is_read_on = d.core.pools.progress(key).is_some();
    let any = d.core.locks.shared(key).is_some();
    if known == Some(pool) && !heard && is_read_on && any {
        return Read::again(d.size() != before);
    }
    let Kind::Permits(pool) = d.ks.look(key, &[]).kind else {
        return Read::again(true);
    };
    if any {
        let (pool, expires) = (Some(pool), found.expires);
        d.core.locks.change_shared(key, |shared| {
            (shared.pool, shared.expires) = (pool, expires);
        });
    }
    d.core.pools.begin(key, Seen::Out(pool));
    let mut read = read_parts(d, key, over);
    read.again |= d.size() != before;
    read
}

/// Reads some parts.
pub fn read_parts(d: &mut Decision<'_>, key: &Key, over: &mut Over) -> Read {
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
            return Read { again: true, dead };
        }
    }
    d.look_later(key);
    let again = d.size() != before;
    Read { again, dead }
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
        if holder.mode == Mode::Permits {
            pool::take_in(d, key, holder);
        } else {
            let found = d.ks.look(key, &holder.owner);
            if !matches!(found.kind, Kind::ReadWrite(_)) {
                // It has run out meanwhile.
                break;
            }
            let is_dead = reader::learn_one(d, key, &holder.owner, &found);
            dead.extend(Some(holder.owner).filter(|_| is_dead));
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
    let some = shared.flat_map(|shared| shared.parties_behind(behind.as_deref()));
    let some: Vec<Party> = some.take(KNOWN).cloned().collect();
    for party in &some {
        let owner = &party.hold.owner;
        let found = d.ks.look(key, owner);
        if !found.kind.is_for_several() {
            break;
        }
        if !party.has_permits {
            let is_dead = reader::learn_one(d, key, owner, &found);
            dead.extend(Some(owner.clone()).filter(|_| is_dead));
        } else if found.holds == 0 {
            pool::vanish(d, key, party);
        }
    }
    match some.last() {
        Some(last) => go_on(d, key, Progress::Known(Some(last.hold.owner.clone()))),
        None => all_read(d, key),
    }
}

/// Those who hold the lock are read so far, if it is still one.
fn go_on(d: &mut Decision<'_>, key: &Key, progress: Progress) {
    let seen = match d.ks.look(key, &[]).kind {
        Kind::Permits(pool) => Some(Seen::Out(pool)),
        Kind::ReadWrite(_) => d.core.pools.seen(key),
        _ => None,
    };
    match seen {
        Some(seen) => d.core.pools.put(key, progress, seen),
        None => d.core.pools.are_read(key),
    }
}

fn all_read(d: &mut Decision<'_>, key: &Key) {
    d.core.pools.are_read(key);
    let found = d.ks.look(key, &[]);
    match found.kind {
        Kind::Permits(_) => pool::all_read(d, key, &found),
        Kind::ReadWrite(_) => reader::all_read(d, key),
        _ => {}
    }
}
