//! The tokens of holds that begin, and the counters that they are written to.

use crate::lock::Counter;

use crate::lock::{Decision, Key, Refusal, Token, Write};

/// What a double counts exactly. All locks draw from one row: a counter beyond this
/// would take the tokens of every lock with it.
const MOST: Token = Token((1 << 53) - 1);

/// How long a counter lives that was made by being raised, after it was last raised: 30
/// days. For ever, and each name that was ever locked so would leave a key behind.
const KEPT_MS: i64 = 30 * 24 * 3600 * 1000;

/// The token of holds that begin on these keys, and those of them whose counter
/// is to be set to it ([`fence`]) once they are held.
pub fn new_token<'k>(
    d: &mut Decision<'_>,
    keys: impl Iterator<Item = &'k Key>,
) -> Result<(Token, Vec<Key>), Refusal> {
    let mut counted = Vec::new();
    let mut greatest = Token::BEFORE_FIRST;
    for key in keys {
        match d.ks.counter(key) {
            Counter::Elsewhere => {}
            Counter::Absent if !d.core.rules.counts => {}
            // It may be on another node, and there must not be two of them.
            Counter::Absent if !d.ks.slot_stays(key) => {
                return Err(Refusal::OnItsWay { key: key.clone() })
            }
            Counter::Absent => counted.push(key.clone()),
            Counter::At(last) if last < MOST => {
                greatest = last.max(greatest);
                counted.push(key.clone());
            }
            Counter::At(_) | Counter::Unusable => {
                return Err(Refusal::CounterUnusable { key: key.clone() })
            }
        }
    }
    Ok((d.core.tokens.next(d.now, greatest), counted))
}

/// Writes a token to the counters of the locks that have it.
pub fn fence(d: &mut Decision<'_>, counted: Vec<Key>, token: Token) {
    for key in counted {
        d.write(&key, Write::Fence { token, until: None });
    }
}

/// The counter of a lock is at least this from now on, and lives for a while; what it is.
pub fn raise(d: &mut Decision<'_>, key: &Key, least: Token) -> Result<Token, Refusal> {
    let last = match d.ks.counter(key) {
        Counter::At(last) if last < MOST => last,
        Counter::Absent if d.ks.slot_stays(key) => Token::BEFORE_FIRST,
        Counter::Absent => return Err(Refusal::OnItsWay { key: key.clone() }),
        Counter::Elsewhere => return Err(Refusal::NoCounter { key: key.clone() }),
        Counter::At(_) | Counter::Unusable => {
            return Err(Refusal::CounterUnusable { key: key.clone() })
        }
    };
    if least > last && !d.core.tokens.may_be_brought(least, d.now) {
        return Err(Refusal::TokenAhead { token: least });
    }
    let token = last.max(least);
    let until = Some(d.now.deadline(KEPT_MS));
    d.write(key, Write::Fence { token, until });
    Ok(token)
}
