//! A lock with permits: several owners hold it at once, and no more permits are out than its
//! limit. What is out is counted in the hash itself, so no request needs to know who holds the
//! rest.

pub mod fields;
mod give;
pub mod hoards;
mod learn;
pub mod limit;
mod short;

pub use short::is_short;

use super::lock_kind::{of_mode, Asked, LockKind};
use crate::lock::ask::Want;
use crate::lock::grant::GrantKind;
use crate::lock::pools::Seen;
use crate::lock::reconcile::{self, Cause, Change, Over};
use crate::lock::table::{Entry, Shared};
use crate::lock::watchdog;
use crate::lock::{
    Decision, Event, Holder, Key, Lease, Look, Mode, Now, Owner, Pool, Reason, Refusal, Token,
    WakeTarget, WallMs, Write,
};
use learn::{forget, give_back};

pub struct Permits;

impl LockKind<Decision<'_>> for Permits {
    fn admit(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        asked: &Asked<'_>,
        look: &mut Look,
    ) -> Result<Option<GrantKind>, Refusal> {
        match look.pool().filter(|_| asked.mode == Mode::Permits) {
            Some(pool) => give::admit(d.core, key, asked, pool),
            None => Ok(None),
        }
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

    /// It stands in the owner's field. The key stays for the owner that stays longest.
    fn set_lease(&self, d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, at: WallMs) {
        let permit = Write::Permit {
            owner: owner.clone(),
            held: Some((look.holds, at)),
            pool: None,
        };
        d.write(key, permit);
        let expires = look.expires.map(|end| end.max(at));
        d.expire_at(key, look.expires, expires);
        d.core.locks.change_shared(key, |shared| {
            shared.expires = expires;
            shared.change(owner, |hold| hold.lease = Lease::Until(at));
        });
    }

    /// A key that somebody has PERSISTed ends with the last of those who hold permits of it, if
    /// all of them are known.
    fn renewed(&self, d: &mut Decision<'_>, key: &Key, look: &Look) {
        if look.expires.is_some() {
            return;
        }
        let shared = d.core.locks.shared(key);
        let shared = shared.filter(|shared| shared.fields() == look.fields);
        if let Some(end) = shared.and_then(Shared::last_end) {
            d.expire_at(key, None, Some(end));
            d.core
                .locks
                .change_shared(key, |shared| shared.expires = Some(end));
        }
    }

    /// They go to the next, and with the last of them the lock is free.
    fn end(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &Owner,
        look: Look,
        ending: &[(Mode, i64)],
    ) {
        let by = of_mode(ending, Mode::Permits);
        if look.holds < 1 || by < 1 {
            return;
        }
        let left = look.holds.saturating_sub(by);
        give_back(d, key, owner, &look, by);
        d.tell(key, Event::Released);
        if left > 0 {
            d.core.locks.change_shared(key, |shared| {
                shared.change(owner, |hold| hold.set_permits(left, look.lease));
            });
        } else if let Some(hold) = forget(d, key, owner) {
            watchdog::on_lost(d, key, hold, Reason::Deleted);
        }
        if left < 1 && look.fields == 1 {
            reconcile::drop_holders(d, key, Reason::Deleted);
            d.left_free(key, WakeTarget::One);
        }
        d.look_later(key);
    }

    fn is_known(&self, known: &Entry) -> bool {
        known.shared().is_some_and(|shared| shared.pool().is_some())
    }

    /// No application's own hash looks so.
    fn is_emptied(&self, _: bool) -> bool {
        true
    }

    /// What was written to the hash by others is taken to be right if they have counted it in
    /// what is out; then all is to be read.
    fn diff(
        &self,
        known: &Entry,
        owner: &[u8],
        found: &Look,
        heard: Option<Cause>,
        now: Now,
    ) -> Option<Change> {
        let shared = known.shared();
        let known_pool = shared.and_then(Shared::pool);
        if heard.is_some() {
            return Some(Change::Holders);
        }
        if found.holds > 0 && found.lease < Lease::Until(now.wall_ms()) {
            return Some(Change::OwnerOver);
        }
        let hold = shared.and_then(|shared| shared.hold(owner));
        let holds = hold.map_or(0, |hold| hold.holds);
        let is_gone = (holds > 0) != (found.holds > 0) && !owner.is_empty();
        if known.fields() != found.fields || is_gone || known_pool != found.pool() {
            return Some(Change::Holders);
        }
        let its = (found.holds > 0).then_some((found.lease, found.holds));
        Change::ends(known, owner, found, its)
    }

    fn learn(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &[u8],
        found: (&Look, Option<Cause>),
        over: &mut Over,
    ) -> bool {
        learn::learn(d, key, owner, found, over)
    }

    /// Somebody has changed the number of an owner's permits, and nothing else.
    fn learn_end(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &[u8],
        found: &Look,
        its: Option<(Lease, i64)>,
    ) -> bool {
        let before = d.core.locks.shared(key).map_or(0, Shared::permits);
        d.core.locks.change_ends(key, owner, found.expires, its);
        let after = d.core.locks.shared(key).map_or(0, Shared::permits);
        learn::count(d, key, after.saturating_sub(before))
    }

    fn end_own_lease(&self, d: &mut Decision<'_>, key: &Key, owner: &[u8], found: &Look) {
        learn::take_in_own(d, key, owner, found);
    }

    /// If nobody else has them. Of a limit that was lowered more are out than there are: of those
    /// who had them nothing is taken.
    fn revive(&self, d: &mut Decision<'_>, key: &Key, owner: &Owner, at: WallMs) -> bool {
        let permits = reconcile::watched(d, key, owner, Mode::Permits);
        let look = d.ks.look(key, owner);
        let shared = d.core.locks.shared(key);
        let known = shared.and_then(Shared::pool);
        let were_out = shared.map_or(0, Shared::permits);
        let is_theirs = |pool: Pool| pool.plus(permits).out <= were_out;
        let is_as_known = |pool: Pool| known.is_some_and(|known| known.is_as(pool));
        let pool = match (look.pool(), known) {
            (Some(pool), _) if look.holds > 0 => pool,
            (Some(pool), _)
                if pool.available() >= permits || is_as_known(pool) && is_theirs(pool) =>
            {
                pool.plus(permits)
            }
            (None, Some(pool)) if look.is_free() => Pool {
                out: permits,
                ..pool
            },
            _ => return false,
        };
        let holds = look.holds.max(permits);
        let permit = Write::Permit {
            owner: owner.clone(),
            held: Some((holds, at)),
            pool: Some(pool),
        };
        d.write(key, permit);
        let expires = reconcile::revived_until(&look, at);
        d.expire_at(key, look.expires, expires);
        d.core.locks.change_shared(key, |shared| {
            shared.set_pool(pool);
            shared.expires = expires;
            shared.change(owner, |hold| hold.set_permits(holds, Lease::Until(at)));
        });
        true
    }

    fn seen(&self, _: &Decision<'_>, _: &Key, found: &Look) -> Option<Seen> {
        found.pool().map(Seen::Out)
    }

    fn learn_one(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        holder: Holder,
        _: &mut Vec<Owner>,
    ) -> bool {
        learn::take_in(d, key, holder);
        true
    }

    fn look_again(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &Owner,
        found: &Look,
        _: &mut Vec<Owner>,
    ) {
        if found.holds == 0 {
            learn::vanish(d, key, owner);
        }
    }

    fn all_read(&self, d: &mut Decision<'_>, key: &Key, found: &Look) {
        learn::all_read(d, key, found);
    }
}
