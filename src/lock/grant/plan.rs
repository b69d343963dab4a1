//! What a request is to have, key by key, and that it has it.

use super::admit::admit;
use super::give::give;
use super::kind::{token_under_way, GrantKind};
use super::secure::secure;
use super::token;

use crate::lock::ask::Want;
use crate::lock::head::{self, Next};
use crate::lock::reconcile;
use crate::lock::{Decision, Key, Look, Refusal, Slot, Token, WaiterId};

/// In what way a request can have each of its keys.
pub type Plan = Vec<(Key, GrantKind, Look)>;

/// The token of a request, and that of each hold that it made.
pub type Given = (Token, Vec<(Key, Token)>);

/// In what way a request can have each of its keys, if it can have them all. `id`: it
/// stands in their queues.
pub fn plan(
    d: &mut Decision<'_>,
    id: Option<WaiterId>,
    keys: &[Key],
    want: &Want,
) -> Result<Option<Plan>, Refusal> {
    let mut plan = Vec::with_capacity(keys.len());
    // One that waits begins with the key that it lacked: until that is to be had it need not look
    // at the others, however many of these come free.
    let waiter = id.and_then(|id| d.core.queues.get(id));
    let lacks = waiter.map_or(0, |waiter| waiter.lacks as usize);
    let (before, from) = keys.split_at_checked(lacks).unwrap_or((&[], keys));
    let in_turn = (before.len()..keys.len()).chain(0..before.len());
    for (place, key) in in_turn.zip(from.iter().chain(before)) {
        let mut look = reconcile::read(d, key, &want.owner);
        // A name that is something else now may be free again later.
        let asked = (want.mode, want.share);
        let how = match admit(d, key, &want.owner, asked, want.once, &mut look) {
            Err(Refusal::NotALock { .. }) => None,
            how => how?,
        };
        if how == Some(GrantKind::First) && d.ks.slot(key) != Slot::Ours {
            return Err(Refusal::Migrating { key: key.clone() });
        }
        let next = head::next(d.core, key);
        let is_next = next.is_none() || next == id.map(Next::Waiter);
        let Some(how) = how.filter(|how| is_next || how.is_holders()) else {
            if let Some(id) = id.filter(|_| keys.len() > 1) {
                d.hold_up(id, key);
                d.core.queues.set_lacks(id, place);
            }
            return Ok(None);
        };
        plan.push((key.clone(), how, look));
    }
    plan.rotate_right(before.len());
    Ok(Some(plan))
}

/// The token that holds have which begin with a request, if any does, and the keys
/// whose counter is to be set to it.
pub fn fresh(
    d: &mut Decision<'_>,
    want: &Want,
    plan: &mut Plan,
) -> Result<Option<(Token, Vec<Key>)>, Refusal> {
    // One that turns out to be gone is to be known before any is taken.
    if plan.len() > 1 {
        for (key, how, look) in plan.iter_mut() {
            secure(d, key, want, *how, look)?;
        }
    }
    // Also for holds that others began: their counter may refuse, and nothing may
    // be written before that.
    let lacks = |(key, how, _): &(Key, GrantKind, Look)| {
        token_under_way(d.core, key, &want.owner, *how).is_none()
    };
    if !plan.iter().any(lacks) {
        return Ok(None);
    }
    let keys = plan.iter().map(|(key, ..)| key);
    token::new_token(d, keys).map(Some)
}

/// Gives all keys that a request wants: its token, and that of each hold. A
/// hold that begins with it has the request's token, a nested one its own.
pub fn carry_out(
    d: &mut Decision<'_>,
    want: &Want,
    plan: Plan,
    fresh: Option<(Token, Vec<Key>)>,
) -> Result<Given, Refusal> {
    let token = fresh.as_ref().map(|(token, _)| *token);
    let mut given = Vec::with_capacity(plan.len());
    let mut greatest = Token::BEFORE_FIRST;
    for (key, how, look) in plan {
        let given_token = give(d, &key, want, how, look, token)?;
        greatest = greatest.max(given_token);
        if how != GrantKind::Same {
            given.push((key, given_token));
        }
    }
    if let Some((token, counted)) = fresh {
        token::fence(d, counted, token);
    }
    Ok((token.unwrap_or(greatest), given))
}
