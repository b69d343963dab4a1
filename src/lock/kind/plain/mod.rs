//! A plain lock: one owner, which may hold it several times.

pub mod fields;

use super::lock_kind::{of_mode, Asked, LockKind};
use crate::lock::ask::Want;
use crate::lock::grant::{one_more, secure, GrantKind};
use crate::lock::reconcile::{self, Cause, Change, Over};
use crate::lock::table::{Entry, Hold};
use crate::lock::{leases, watchdog};
use crate::lock::{
    Decision, Event, Key, Lease, Look, Mode, Now, Owner, Reason, Refusal, Token, WakeTarget,
    WallMs, Write,
};

pub struct Plain;

impl LockKind<Decision<'_>> for Plain {
    fn admit(
        &self,
        _: &mut Decision<'_>,
        key: &Key,
        asked: &Asked<'_>,
        _: &mut Look,
    ) -> Result<Option<GrantKind>, Refusal> {
        asked.nested(key)
    }

    /// The lease of a nested hold lengthens that of the lock to at least the new one, and never
    /// shortens it; a lock without one stays without.
    fn give(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        want: &Want,
        how: GrantKind,
        mut look: Look,
        token: Token,
    ) -> Result<(), Refusal> {
        let until = d.now.deadline(want.lease);
        if how == GrantKind::First {
            let (owner, holds) = (want.owner.clone(), 1);
            let at = until;
            d.write(key, Write::Take { owner, holds, at });
            let hold = Hold::granted(want, token, d.now.wall);
            d.core.locks.set_plain(key, hold, Some(at));
            return Ok(());
        }
        let holds = one_more(look.holds, key, &want.owner)?;
        secure(d, key, want, how, &mut look)?;
        d.count(key, &want.owner, Mode::Exclusive, holds, 1);
        let expires = look.expires.map(|at| at.max(until));
        d.expire_at(key, look.expires, expires);
        leases::know_end(d, key, &look, expires);
        Ok(())
    }

    fn set_lease(&self, d: &mut Decision<'_>, key: &Key, _: &Owner, look: &Look, at: WallMs) {
        leases::set_end(d, key, look, at);
    }

    fn end(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &Owner,
        look: Look,
        ending: &[(Mode, i64)],
    ) {
        let by = of_mode(ending, Mode::Exclusive);
        if look.holds < 1 || by < 1 {
            return;
        }
        let left = look.holds.saturating_sub(by);
        if left > 0 {
            d.count(key, owner, Mode::Exclusive, left, by.saturating_neg());
            d.core.locks.set_deadline(key, look.expires);
            return d.tell(key, Event::Released);
        }
        for hold in d.free(key, Event::Released, WakeTarget::One) {
            watchdog::on_lost(d, key, hold, Reason::Deleted);
        }
    }

    fn is_known(&self, known: &Entry) -> bool {
        known.shared().is_none()
    }

    fn diff(
        &self,
        known: &Entry,
        owner: &[u8],
        found: &Look,
        heard: Option<Cause>,
        _: Now,
    ) -> Option<Change> {
        let is_its = known.plain_of(owner).is_some();
        let is_replaced = known.plain().is_some() && is_its != (found.holds > 0);
        if is_replaced {
            return Some(Change::replaced(heard));
        }
        if !known.is_held() {
            return Some(Change::Holders);
        }
        (known.deadline != found.expires).then_some(Change::Ends(None))
    }

    /// It is known from the first look at it on, be it found after a restart or one that a script
    /// took: then it stays a lock if somebody PERSISTs it, or makes a read/write lock of it.
    fn learn(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        owner: &[u8],
        (found, _): (&Look, Option<Cause>),
        _: &mut Over,
    ) -> bool {
        let holder = if found.holds > 0 {
            Some(Owner::from(owner))
        } else {
            let holders = d.ks.holders(key).into_iter();
            let mut plain = holders.filter(|holder| holder.mode == Mode::Exclusive);
            plain.next().map(|holder| holder.owner)
        };
        if let Some(owner) = holder {
            let hold = Hold::plain(owner.clone());
            d.core.locks.set_plain(key, hold, found.expires);
            d.joined(key, &owner);
        }
        false
    }

    fn learn_end(
        &self,
        d: &mut Decision<'_>,
        key: &Key,
        _: &[u8],
        found: &Look,
        _: Option<(Lease, i64)>,
    ) -> bool {
        d.core.locks.set_deadline(key, found.expires);
        false
    }

    fn revive(&self, d: &mut Decision<'_>, key: &Key, owner: &Owner, at: WallMs) -> bool {
        let holds = reconcile::watched(d, key, owner, Mode::Exclusive);
        let owner = owner.clone();
        d.write(key, Write::Take { owner, holds, at });
        d.core.locks.set_deadline(key, Some(at));
        true
    }
}
