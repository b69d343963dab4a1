//! Permits: several owners hold a lock at once, and no more permits are out than its limit.
//!
//! The limit comes with each request: whoever takes the first ones sets it. What is out is
//! counted in the hash, and each owner has a field with its permits and its own lease.

use super::kind::GrantKind;
use super::secure::secure;

use crate::lock::ask::{Once, Share, Want};
use crate::lock::table::{Begun, Party};
use crate::lock::{
    Core, Decision, Key, Kind, Lease, Look, NoPermits, Owner, Pool, Refusal, Token, Write,
};

/// In what way an owner that holds so many already can have permits of a lock which is held
/// by some.
pub fn admit(
    core: &Core,
    key: &Key,
    owner: &[u8],
    (share, once): (Share, Once),
    (held, pool): (i64, Pool),
) -> Result<Option<GrantKind>, Refusal> {
    let refuse = |why| Refusal::Permits {
        key: key.clone(),
        why,
    };
    if pool.asked != share.limit() {
        // As far as it is known that anybody holds any: the rest may have run out.
        let any = core
            .locks
            .shared(key)
            .is_some_and(|known| known.permits() > 0);
        return if any {
            Err(refuse(NoPermits::OtherLimit(pool)))
        } else {
            Ok(None)
        };
    }
    if held > 0 {
        match once {
            Once::Nests => {}
            Once::IsTheSame if held == share.count() => return Ok(Some(GrantKind::Same)),
            Once::IsTheSame => {
                let owner = Owner::from(owner);
                return Err(refuse(NoPermits::OtherShare { owner, held }));
            }
            Once::IsRefused => {
                let (key, owner) = (key.clone(), Owner::from(owner));
                return Err(Refusal::Held { key, owner });
            }
        }
    }
    if share.count() > pool.limit {
        return Err(refuse(NoPermits::AboveLimit(pool)));
    }
    Ok((share.count() <= pool.available()).then_some(GrantKind::Join))
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
    let before = match look.kind {
        Kind::Permits(pool) => pool,
        _ => Pool {
            asked: limit,
            limit,
            out: 0,
        },
    };
    let pool = Some(before.plus(want.share.count()));
    let holds = look.holds.saturating_add(want.share.count());
    let at = look.lease.end().map_or(until, |at| at.max(until));
    let owner = want.owner.clone();
    let held = Some((holds, at));
    d.write(key, Write::Permit { owner, held, pool });
    let expires = match (how, look.expires) {
        (GrantKind::First, _) => Some(at),
        (_, end) => end.map(|end| end.max(at)),
    };
    d.expire_at(key, look.expires, expires);
    let now = d.now.wall;
    d.core.locks.change_shared(key, |shared| {
        (shared.pool, shared.expires) = (pool, expires);
        let known = shared.remove(&want.owner);
        let mut party = known.unwrap_or_else(|| Party::found(want.owner.clone()));
        party.set_permits(holds, Lease::Until(at));
        let since = party.hold.since().unwrap_or(now);
        party.begin(Begun { token, since });
        party.given(want.mode, token);
        shared.put(party);
    });
    Ok(())
}
