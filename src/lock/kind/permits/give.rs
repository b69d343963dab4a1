//! Permits are given. The limit comes with each request: whoever takes the first ones sets it.

use crate::lock::ask::{Once, Share, Want};
use crate::lock::grant::{secure, GrantKind};
use crate::lock::kind::lock_kind::Asked;
use crate::lock::table::{Begun, Hold};
use crate::lock::{
    Core, Decision, Key, Lease, Look, NoPermits, Owner, Pool, Refusal, Token, Write,
};

/// In what way an owner can have permits of a lock which is held by some.
pub fn admit(
    core: &Core,
    key: &Key,
    asked: &Asked<'_>,
    pool: Pool,
) -> Result<Option<GrantKind>, Refusal> {
    let (held, owner) = (asked.has.count(asked.mode), asked.owner);
    if held > 0 && pool.asked == asked.share.limit() {
        match asked.once {
            Once::Nests => {}
            Once::IsTheSame if held == asked.share.count() => return Ok(Some(GrantKind::Same)),
            Once::IsTheSame => {
                let owner = Owner::from(owner);
                return Err(refuse(key, NoPermits::OtherShare { owner, held }));
            }
            Once::IsRefused => return Err(asked.held(key)),
        }
    }
    can_have(core, key, asked.share, pool)
}

/// Whether somebody can have so many permits more.
pub fn can_have(
    core: &Core,
    key: &Key,
    share: Share,
    pool: Pool,
) -> Result<Option<GrantKind>, Refusal> {
    if pool.asked != share.limit() {
        // As far as it is known that anybody holds any: the rest may have run out.
        let known = core.locks.shared(key);
        return match known.is_some_and(|known| known.permits() > 0) {
            true => Err(refuse(key, NoPermits::OtherLimit(pool))),
            false => Ok(None),
        };
    }
    if share.count() > pool.limit {
        return Err(refuse(key, NoPermits::AboveLimit(pool)));
    }
    Ok((share.count() <= pool.available()).then_some(GrantKind::Join))
}

fn refuse(key: &Key, why: NoPermits) -> Refusal {
    let key = key.clone();
    Refusal::Permits { key, why }
}

/// The owner has so many permits more.
pub fn give(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: GrantKind,
    mut look: Look,
    token: Token,
) -> Result<(), Refusal> {
    secure(d, key, want, how, &mut look)?;
    let until = d.now.deadline(want.lease);
    let limit = want.share.limit();
    let before = look.pool().unwrap_or(Pool {
        asked: limit,
        limit,
        out: 0,
    });
    let pool = before.plus(want.share.count());
    let holds = look.holds.saturating_add(want.share.count());
    let at = look.lease.end().map_or(until, |at| at.max(until));
    let permit = Write::Permit {
        owner: want.owner.clone(),
        held: Some((holds, at)),
        pool: Some(pool),
    };
    d.write(key, permit);
    let expires = match (how, look.expires) {
        (GrantKind::First, _) => Some(at),
        (_, end) => end.map(|end| end.max(at)),
    };
    d.expire_at(key, look.expires, expires);
    let now = d.now.wall;
    d.core.locks.change_shared(key, |shared| {
        shared.set_pool(pool);
        shared.expires = expires;
        let known = shared.remove(&want.owner);
        let mut hold = known.unwrap_or_else(|| Hold::of(want.owner.clone()));
        hold.set_permits(holds, Lease::Until(at));
        let since = hold.since().unwrap_or(now);
        hold.begin(Begun { token, since });
        hold.given(want.mode, token);
        shared.put(hold);
    });
    Ok(())
}
