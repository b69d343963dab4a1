//! Whether the holds that are there are those that a request means.

use crate::lock::modes::modes;
use crate::lock::table::Entry;
use crate::lock::{Aim, Counter, Decision, Ended, Key, Look, Mode, Only, Refusal, Token};

/// Whether RELEASE means what the owner holds in its mode.
pub fn is_to_end(d: &mut Decision<'_>, key: &Key, ended: &Ended<'_>) -> Result<bool, Refusal> {
    let Some(Only::Token(token)) = ended.only else {
        return Ok(true);
    };
    let known = d.core.locks.hold(key, ended.owner);
    if known.is_some_and(|hold| hold.token().is_some()) {
        let locks = &d.core.locks;
        return Ok(locks.has_token(key, ended.owner, ended.mode, token));
    }
    is_last_token(d, key, token)
}

/// Whether FORCE means this lock.
pub fn is_aimed_at(
    d: &mut Decision<'_>,
    key: &Key,
    look: &Look,
    aim: &Aim<'_>,
) -> Result<bool, Refusal> {
    let token = match aim {
        Aim::Owner(owner) => return Ok(modes(d.core, key, owner, look).any().is_some()),
        Aim::Token(token) => *token,
    };
    let entry = d.core.locks.get(key);
    if entry.is_some_and(|entry| is_among(entry, token)) {
        return Ok(true);
    }
    // The last token was given to whoever holds it alone. Among readers it may be that of
    // one who has left.
    let alone = entry.and_then(|entry| match entry.shared() {
        Some(shared) => shared.hold(shared.writer()?),
        None => entry.plain(),
    });
    match alone {
        Some(hold) if hold.token().is_none() => is_last_token(d, key, token),
        _ => Ok(false),
    }
}

/// Whether some known hold of the lock has this token.
fn is_among(entry: &Entry, token: Token) -> bool {
    entry.holds().any(|hold| {
        let reads = entry.tokens(&hold.owner, Mode::Read).unzip();
        [hold.token(), reads.0, reads.1].contains(&Some(token))
    })
}

/// Whether the lock's fencing counter, if it has one, has given this token last: that of a
/// hold which was found.
fn is_last_token(d: &mut Decision<'_>, key: &Key, token: Token) -> Result<bool, Refusal> {
    match d.ks.counter(key) {
        Counter::At(last) => Ok(last == token),
        Counter::Absent if !d.ks.slot_stays(key) => Err(Refusal::Migrating { key: key.clone() }),
        Counter::Absent | Counter::Elsewhere | Counter::Unusable => Ok(false),
    }
}
