//! A read/write lock: many readers, each with a lease of its own, or one writer. A reader whose
//! lease keys are gone holds nothing, though its field may be there.

mod end;
pub mod expire;
pub mod fields;
mod give;
mod keeps_out;
pub mod known;
mod learn;
mod learn_one;
pub mod lease_keys;
mod merge;

use super::lock_kind::{Asked, LockKind};
use crate::lock::ask::Want;
use crate::lock::grant::GrantKind;
use crate::lock::leases;
use crate::lock::modes::modes;
use crate::lock::pools::Seen;
use crate::lock::reconcile::{self, Cause, Change, Over};
use crate::lock::table::{Entry, Shared, SharedKind};
use crate::lock::{
    Decision, Holder, Key, Lease, Look, Mode, Now, Owner, Refusal, Token, WakeTarget, WallMs,
    Write, MOST_READS,
};
use expire::{expire_reader, others};
use keeps_out::keeps_readers_out;
use known::{is_left_over, lease_now};

pub struct ReadWrite;

impl LockKind<Decision<'_>> for ReadWrite {
    fn admit(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        asked: &Asked<'_>,
        look: &mut Look,
    ) -> Result<Option<GrantKind>, Refusal> {
        if let Some(how) = asked.nested(key)? {
            return Ok(Some(how));
        }
        let (mode, owner) = (asked.mode, asked.owner);
        if mode == Mode::Read && asked.has.has(Mode::Write) {
            return Ok(Some(GrantKind::Under));
        }
        let is_in_the_way = match mode {
            Mode::Permits => true,
            Mode::Read => keeps_readers_out(d, key),
            Mode::Exclusive | Mode::Write => others(d, key, owner),
        };
        if is_in_the_way {
            return Ok(None);
        }
        *look = reconcile::read(d, key, owner);
        Ok(match mode {
            _ if look.is_free() => Some(GrantKind::First),
            _ if !look.kind.is_read_write() => None,
            Mode::Read => Some(GrantKind::Join),
            _ => asked.has.has(Mode::Read).then_some(GrantKind::Upgrade),
        })
    }

    fn give(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        want: &Want,
        how: GrantKind,
        look: Look,
        token: Token,
    ) -> Result<(), Refusal> {
        give::give(d, key, want, how, look, token)
    }

    fn set_lease(&self, d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, at: WallMs) {
        let has = modes(d.core, key, owner, look);
        if has.has(Mode::Exclusive) {
            return leases::set_end(d, key, look, at);
        }
        if has.has(Mode::Read) {
            lease_keys::renew(d, key, owner, look.holds, at);
        }
        let mut expires = Some(at);
        d.core.locks.change_shared(key, |shared| {
            shared.change(owner, |hold| {
                if hold.reads {
                    hold.lease = Lease::Until(at);
                }
            });
            // The hash stays for the reader that stays longest.
            if !has.has(Mode::Write) {
                let end = look.expires.map(|end| end.max(at));
                // As long as all of them are known.
                let last = shared.last_end().filter(|_| shared.fields() >= look.fields);
                expires = last.or(end);
            }
            shared.expires = expires;
        });
        d.expire_at(key, look.expires, expires);
    }

    fn end(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &Owner,
        look: Look,
        ending: &[(Mode, i64)],
    ) {
        end::end(d, key, owner, look, ending);
    }

    fn force(&self, d: &mut Decision<'_>, key: &Key) -> Result<WakeTarget, Refusal> {
        let migrating = || Err(Refusal::Migrating { key: key.clone() });
        if d.core.locks.are_many(key) {
            let is_half = d.core.locks.shared(key).is_some_and(Shared::is_half);
            return if is_half {
                migrating()
            } else {
                Ok(WakeTarget::AllShared)
            };
        }
        let holders = d.ks.holders(key);
        let mut leases = holders.iter().map(|holder| holder.lease);
        if leases.any(|lease| lease == Lease::Migrating) {
            return migrating();
        }
        for holder in holders {
            if holder.mode == Mode::Read && holder.lease != Lease::Gone {
                lease_keys::end(d, key, &holder.owner, 1..=holder.holds);
            }
        }
        Ok(WakeTarget::AllShared)
    }

    /// A hash with a field `mode` that is somebody's data is no lock.
    fn is_lock(&self, d: &Decision<'_>, key: &Key, found: &Look) -> bool {
        let known = d.core.locks.get(key).map_or(0, Entry::fields);
        let is_known = known == found.fields || d.core.pools.progress(key).is_some();
        found.fields > 0 && is_known
    }

    /// Also of a plain one of which somebody has made a read/write lock.
    fn is_known(&self, known: &Entry) -> bool {
        known
            .shared()
            .is_none_or(|shared| shared.kind == SharedKind::ReadWrite)
    }

    /// If none is known it is somebody's data.
    fn is_emptied(&self, known: bool) -> bool {
        known
    }

    fn diff(
        &self,
        known: &Entry,
        owner: &[u8],
        found: &Look,
        heard: Option<Cause>,
        now: Now,
    ) -> Option<Change> {
        if heard.is_some() && !are_as_many(known, found) {
            return Some(Change::Holders);
        }
        let hold = known.shared().and_then(|shared| shared.hold(owner));
        let known_to_read = hold.is_some_and(|hold| hold.reads) || known.plain_of(owner).is_some();
        let known_to_write = hold.is_some_and(|hold| hold.writes);
        let as_found = (found.holds > 0, found.writes > 0);
        if known.fields() != found.fields || (known_to_read, known_to_write) != as_found {
            return Some(Change::Holders);
        }
        let reads = found.holds > 0 && !is_left_over(Some(known), owner, found.lease);
        let lease = lease_now(Some(known), owner, found.lease, now);
        if reads && lease == Lease::Gone {
            return Some(Change::OwnerOver);
        }
        let its = reads.then_some((lease, found.holds));
        Change::ends(known, owner, found, its)
    }

    fn learn(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &[u8],
        (found, _): (&Look, Option<Cause>),
        over: &mut Over,
    ) -> bool {
        learn::learn(d, key, owner, found, over)
    }

    fn learn_end(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &[u8],
        found: &Look,
        its: Option<(Lease, i64)>,
    ) -> bool {
        d.core.locks.change_ends(key, owner, found.expires, its);
        false
    }

    fn end_own_lease(&self, d: &mut Decision<'_>, key: &Key, owner: &[u8], _: &Look) {
        expire_reader(d, key, &Owner::from(owner), Cause::Unknown);
    }

    fn revive(&self, d: &mut Decision<'_>, key: &Key, owner: &Owner, at: WallMs) -> bool {
        let reads = reconcile::watched(d, key, owner, Mode::Read);
        let writes = reconcile::watched(d, key, owner, Mode::Write);
        let look = d.ks.look(key, owner);
        let mode = if writes > 0 { Mode::Write } else { Mode::Read };
        if look.is_free() {
            d.write(key, Write::SetMode(mode));
        }
        for (mode, has, holds) in [
            (Mode::Write, look.writes, writes),
            (Mode::Read, look.holds, reads),
        ] {
            if has == 0 && holds > 0 {
                d.count(key, owner, mode, holds, holds);
            }
        }
        for index in 1..=reads.min(MOST_READS) {
            let (owner, at) = (owner.clone(), Some(at));
            d.write(key, Write::Lease { owner, index, at });
        }
        let expires = reconcile::revived_until(&look, at);
        d.expire_at(key, look.expires, expires);
        d.core.locks.change_shared(key, |shared| {
            shared.expires = expires;
            shared.change(owner, |hold| {
                hold.reads = reads > 0;
                hold.holds = reads;
                hold.writes = writes > 0;
                hold.lease = if reads > 0 {
                    Lease::Until(at)
                } else {
                    Lease::Gone
                };
            });
        });
        true
    }

    fn seen(&self, d: &Decision<'_>, key: &Key, _: &Look) -> Option<Seen> {
        d.core.pools.seen(key)
    }

    fn learn_one(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        holder: Holder,
        dead: &mut Vec<Owner>,
    ) -> bool {
        let found = d.ks.look(key, &holder.owner);
        // Else it has run out meanwhile.
        let is_there = found.kind.is_read_write();
        if is_there {
            self.look_again(d, key, &holder.owner, &found, dead);
        }
        is_there
    }

    fn look_again(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &Owner,
        found: &Look,
        dead: &mut Vec<Owner>,
    ) {
        if learn_one::learn_one(d, key, owner, found) {
            dead.push(owner.clone());
        }
    }

    fn all_read(&self, d: &mut Decision<'_>, key: &Key, _: &Look) {
        learn_one::all_read(d, key);
    }
}

/// There are very many holders, and as many as were known: they are not all read again at each
/// thing that is heard of the key. Where one came for another, that shows when the other's
/// lease is over.
fn are_as_many(known: &Entry, found: &Look) -> bool {
    known.are_many() && known.fields() == found.fields
}
