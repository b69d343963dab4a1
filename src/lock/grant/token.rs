//! The tokens of holds that begin, and the counters that they are written to.

use crate::lock::table::Hold;
use crate::lock::{Counter, Decision, Key, Mode, Refusal, Token, Write};

/// How long a counter lives that was made by being raised, after it was last raised: 30
/// days. For ever, and each name that was ever locked so would leave a key behind.
const KEPT_MS: i64 = 30 * 24 * 3600 * 1000;

/// The token of holds that begin on these keys, and those of them whose counter
/// is to be set to it ([`fence`]) once they are held. It is above all that each of them has had.
pub fn new_token<'k>(
    d: &mut Decision<'_>,
    keys: impl Iterator<Item = &'k Key> + Clone,
) -> Result<(Token, Vec<Key>), Refusal> {
    let mut counted = Vec::new();
    let mut greatest = Token::BEFORE_FIRST;
    for key in keys.clone() {
        match d.ks.counter(key) {
            Counter::Elsewhere => {}
            Counter::Absent if !d.core.rules.counts => {}
            // It may be on another node, and there must not be two of them.
            Counter::Absent if !d.ks.slot_stays(key) => {
                return Err(Refusal::Migrating { key: key.clone() })
            }
            Counter::Absent => counted.push(key.clone()),
            Counter::At(last) => {
                greatest = below_most(key, last)?.max(greatest);
                counted.push(key.clone());
            }
            Counter::Unusable => return Err(Refusal::CounterUnusable { key: key.clone() }),
        }
        greatest = greatest.max(d.core.tokens.before(key));
    }
    let token = d.core.tokens.next(d.now, greatest);
    let token = token.ok_or(Refusal::NoToken)?;
    for key in keys {
        d.core.tokens.given(key, token);
    }
    Ok((token, counted))
}

/// The one hold of an owner has a new token from now on, which it is given as one that begins.
pub fn renew_token(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    mode: Mode,
) -> Result<Token, Refusal> {
    if let Some(had) = d.core.locks.hold(key, owner).and_then(Hold::token) {
        // It may have been forgotten how far the lock is ahead of the clock.
        let had = below_most(key, had)?;
        d.core.tokens.given(key, had);
    }
    let (token, counted) = new_token(d, std::iter::once(key))?;
    let locks = &mut d.core.locks;
    locks.renew_token(key, owner, mode, token, d.now.wall);
    fence(d, counted, token);
    Ok(token)
}

/// What a counter says, if there is a token above it.
fn below_most(key: &Key, last: Token) -> Result<Token, Refusal> {
    if last >= Token::MOST {
        return Err(Refusal::CounterSpent { key: key.clone() });
    }
    Ok(last)
}

/// Writes a token to the counters of the locks that have it.
pub fn fence(d: &mut Decision<'_>, counted: Vec<Key>, token: Token) {
    for key in counted {
        d.write(&key, Write::Fence { token, until: None });
    }
}

/// The counter of a lock is at least this from now on, and what the owner got last for it,
/// and lives for a while; what it is.
pub fn raise(
    d: &mut Decision<'_>,
    key: &Key,
    brought: Token,
    newest: Token,
) -> Result<Token, Refusal> {
    let last = match d.ks.counter(key) {
        Counter::At(last) => below_most(key, last)?,
        Counter::Absent if d.ks.slot_stays(key) => Token::BEFORE_FIRST,
        Counter::Absent => return Err(Refusal::Migrating { key: key.clone() }),
        Counter::Elsewhere => return Err(Refusal::NoCounter { key: key.clone() }),
        Counter::Unusable => return Err(Refusal::CounterUnusable { key: key.clone() }),
    };
    let had = last.max(newest).max(d.core.tokens.before(key));
    if brought > had && !d.core.tokens.may_be_brought(brought, d.now) {
        return Err(Refusal::TokenAhead { token: brought });
    }
    let token = last.max(newest).max(brought);
    d.core.tokens.given(key, token);
    let until = Some(d.now.deadline(KEPT_MS));
    d.write(key, Write::Fence { token, until });
    Ok(token)
}
