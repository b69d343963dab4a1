//! An owner reads or writes from now on.

use super::lease_keys;
use crate::lock::ask::Want;
use crate::lock::grant::{one_more, secure, too_many, GrantKind};
use crate::lock::kind::own_lease;
use crate::lock::table::{Begun, Hold};
use crate::lock::{
    Decision, Key, Kind, Lease, Look, Mode, Refusal, Token, WallMs, Write, MOST_READS,
};

/// A hold in READ or WRITE mode.
pub fn give(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: GrantKind,
    mut look: Look,
    token: Token,
) -> Result<(), Refusal> {
    let until = d.now.deadline(want.lease);
    let at = match (how, own_lease(&look)) {
        (GrantKind::First | GrantKind::Join, _) => Some(until),
        (_, Lease::Until(at)) => Some(at.max(until)),
        (_, Lease::Gone | Lease::Endless | Lease::Migrating) => None,
    };
    let holds = next_hold(d, key, want, &look)?;
    secure(d, key, want, how, &mut look)?;
    write(d, key, want, how, &look, (holds, at));
    let expires = match (how, look.expires) {
        (GrantKind::First, _) => at,
        // Its reader is alone now: the lock ends with it.
        (GrantKind::Upgrade, Some(_)) if at.is_some() => at,
        (_, None) => None,
        // A lease without an end goes with the hash all the same.
        (_, Some(end)) => Some(at.unwrap_or(until).max(end)),
    };
    d.expire_at(key, look.expires, expires);
    let since = d.now.wall;
    d.core.locks.change_shared(key, |shared| {
        shared.expires = expires;
        let known = shared.remove(&want.owner);
        let mut hold = known.unwrap_or_else(|| Hold::of(want.owner.clone()));
        if want.mode == Mode::Read {
            hold.reads = true;
            hold.holds = holds;
        }
        hold.writes |= want.mode == Mode::Write;
        if hold.reads {
            hold.lease = Lease::of(at);
        }
        if hold.token() != Some(token) {
            hold.begin(Begun { token, since });
        }
        hold.given(want.mode, token);
        shared.put(hold);
    });
    Ok(())
}

/// How many holds the owner has in its mode with this one, if it can have one more.
fn next_hold(d: &mut Decision<'_>, key: &Key, want: &Want, look: &Look) -> Result<i64, Refusal> {
    let owner = &want.owner;
    if want.mode == Mode::Write {
        return one_more(look.writes, key, owner);
    }
    let holds = one_more(look.holds, key, owner)?;
    if holds > MOST_READS {
        return Err(too_many(key, owner));
    }
    if !d.ks.may_lease(key, owner, holds) {
        return Err(Refusal::LeaseKeyTaken {
            key: key.clone(),
            owner: owner.clone(),
        });
    }
    Ok(holds)
}

/// Writes the hold: the mode, the field, and the lease keys of a reader.
fn write(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: GrantKind,
    look: &Look,
    (holds, at): (i64, Option<WallMs>),
) {
    let mode = match (how, look.kind) {
        (GrantKind::First | GrantKind::Upgrade, _) => Some(want.mode),
        // The writer is gone without a word.
        (GrantKind::Join, Kind::ReadWrite(Mode::Write)) => Some(Mode::Read),
        _ => None,
    };
    if let Some(mode) = mode {
        d.write(key, Write::SetMode(mode));
    }
    let owner = &want.owner;
    d.count(key, owner, want.mode, holds, 1);
    // By hand, the lease keys of a writer that reads too may have had another end.
    if let Some(at) = at.filter(|at| look.lease != Lease::Until(*at)) {
        lease_keys::renew(d, key, owner, look.holds, at);
    }
    if want.mode == Mode::Read {
        let (owner, index) = (owner.clone(), holds);
        d.write(key, Write::Lease { owner, index, at });
    }
}
