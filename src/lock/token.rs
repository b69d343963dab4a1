//! Fencing tokens by the clock: no key is needed for them, and they keep rising
//! across a restart as far as the clock does. Where a lock has a counter beside it,
//! as Redisson's RFencedLock keeps one, its tokens rise above that and are written
//! there, so that both draw from one row of numbers whatever the clock does.
//!
//! See Kleppmann, "How to do distributed locking" (2016), for what a token is
//! good for: storage that remembers the greatest one it has seen refuses a
//! holder whose lease ended without its notice.

use super::{Counter, Decision, Key, Now, Refusal, Token, Write};

/// What a double counts exactly. All locks draw from one row: a counter beyond this
/// would take the tokens of every lock with it.
const MOST: Token = Token((1 << 53) - 1);

/// Hands out tokens: each greater than all before it, and not less than the
/// microseconds since 1970. They fit in 53 bits until the year 2255.
#[derive(Clone, Debug)]
pub struct Tokens {
    last: Token,
}

impl Default for Tokens {
    fn default() -> Self {
        let last = Token::BEFORE_FIRST;
        Self { last }
    }
}

impl Tokens {
    /// The token of a first acquisition at `now`, above every counter of its keys.
    pub fn next(&mut self, now: Now, counter: Token) -> Token {
        let next = self.last.max(counter).next();
        self.last = next.max(Token(now.wall.0));
        self.last
    }
}

/// The token of holds that begin on these keys, and those of them whose counter
/// is to be set to it ([`Core::fence`]) once they are held.
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
            Counter::Absent if !d.ks.is_settled(key) => {
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
        d.write(Write::Fence { key, token });
    }
}
