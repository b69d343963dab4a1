//! A lock becomes an owner's.

use super::kind::{token_under_way, GrantKind};
use super::secure::secure;
use super::token;

use crate::lock::ask::Want;
use crate::lock::kind::own_lease;
use crate::lock::modes::modes;
use crate::lock::{leases, reconcile, watchdog};
use crate::lock::{Decision, Event, Key, Lease, Look, Mode, Refusal, Token};

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
    debug_assert_eq!(is_first, look.is_free(), "a free lock is given first");
    reconcile::end_first(d, key, &want.owner);
    let now = d.now;
    let before = modes(d.core, key, &want.owner, &look).counts();
    let known = token_under_way(d.core, key, &want.owner, how);
    let (token, counted) = match known.or(token) {
        Some(token) => (token, Vec::new()),
        None => token::new_token(d, std::iter::once(key))?,
    };
    if how == GrantKind::Same {
        again(d, key, want, look)?;
        d.core.locks.given(key, &want.owner, want.mode, token);
    } else {
        let kind = d.kinds.in_mode(want.mode);
        kind.give(d, key, want, how, look, token)?;
    }
    // Of a hold that was found it is not known.
    if !is_first {
        d.core.locks.begin(key, &want.owner, token, now.wall);
    }
    token::fence(d, counted, token);
    if how == GrantKind::Same {
        watchdog::on_again(d, key, want, &before);
        d.joined(key, &want.owner);
        return Ok(token);
    }
    if matches!(how, GrantKind::First | GrantKind::Join) {
        d.core.subscribers.count_grant(key);
    }
    d.tell(key, Event::Acquired);
    if !want.binding().is_empty() || !is_first || want.mode != Mode::Exclusive {
        watchdog::on_acquired(d.core, key, want, &before, now);
    }
    d.joined(key, &want.owner);
    Ok(token)
}

/// The owner has it already and asks with ONCE: its lease is lengthened to at least the new
/// one. If the reply that told it of the hold is lost, the hold stays.
fn again(d: &mut Decision<'_>, key: &Key, want: &Want, mut look: Look) -> Result<(), Refusal> {
    let until = d.now.deadline(want.lease);
    let is_shorter = matches!(own_lease(&look), Lease::Until(at) if at < until);
    secure(d, key, want, GrantKind::Same, &mut look)?;
    if is_shorter {
        leases::set_lease(d, key, &want.owner, &look, until);
    }
    d.tell(key, Event::Renewed);
    d.core.in_flight.let_stand(key, &want.owner, want.mode);
    Ok(())
}
