//! A lock becomes an owner's.

use super::admit::secure;
use super::kind::{one_more, token_under_way, GrantKind};
use super::{shared, token};

use crate::lock::ask::Want;
use crate::lock::modes::modes;
use crate::lock::table::Hold;
use crate::lock::{leases, reconcile, watchdog};
use crate::lock::{Decision, Event, Key, Kind, Look, Mode, Refusal, Token, Write};

/// The lock is the owner's from now on, or once more; the token.
pub fn give(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: GrantKind,
    look: Look,
    token: Option<Token>,
) -> Result<Token, Refusal> {
    let is_first = how == GrantKind::First;
    debug_assert_eq!(
        is_first,
        look.kind == Kind::Free,
        "a free lock is given first"
    );
    let now = d.now;
    let before = modes(d.core, key, &want.owner, &look).counts();
    let known = token_under_way(d.core, key, &want.owner, how);
    let (token, counted) = match known.or(token) {
        Some(token) => (token, Vec::new()),
        None => token::new_token(d, std::iter::once(key))?,
    };
    match (want.mode, how) {
        (Mode::Exclusive, GrantKind::First) => {
            let at = now.deadline(want.lease);
            let (owner, holds) = (want.owner.clone(), 1);
            d.write(key, Write::Take { owner, holds, at });
            let hold = Hold {
                token: Some(token),
                since: Some(now.wall),
                client: want.client,
                ..Hold::found(want.owner.clone())
            };
            d.core.locks.set_plain(key, hold);
            d.core.locks.set_deadline(key, Some(at));
        }
        (Mode::Exclusive, _) => {
            nest(d, key, want, look)?;
            reconcile::know_plain(d, key, &want.owner, &look);
            let hold = d.core.locks.hold_mut(key, &want.owner);
            if let Some(hold) = hold.filter(|hold| hold.token.is_none()) {
                hold.token = Some(token);
                hold.since = Some(now.wall);
            }
        }
        _ => shared::give_shared(d, key, want, how, look, token)?,
    }
    token::fence(d, counted, token);
    if matches!(how, GrantKind::First | GrantKind::Join) {
        d.core.subscribers.count_grant(key);
    }
    d.tell(key, Event::Acquired);
    if want.watch || !is_first || want.mode != Mode::Exclusive {
        watchdog::on_acquired(d.core, key, want, &before, now);
    }
    d.joined(key, &want.owner);
    Ok(token)
}

/// One more plain hold for an owner that has the lock. The lease is lengthened
/// to at least the new one, never shortened; a lock without one stays without.
fn nest(d: &mut Decision<'_>, key: &Key, want: &Want, mut look: Look) -> Result<(), Refusal> {
    let holds = one_more(look.holds, key, &want.owner)?;
    secure(d, key, want, GrantKind::Nest, &mut look)?;
    d.count(key, &want.owner, Mode::Exclusive, holds, 1);
    let until = d.now.deadline(want.lease);
    let expires = look.expires.map(|at| at.max(until));
    d.expire_at(key, look.expires, expires);
    leases::know_end(d, key, &look, expires);
    Ok(())
}
