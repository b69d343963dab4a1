//! Fencing tokens by the clock: no key is needed for them, and they keep rising
//! across a restart as far as the clock does. Where a lock has a counter beside it,
//! as Redisson's RFencedLock keeps one, its tokens rise above that and are written
//! there, so that both draw from one row of numbers whatever the clock does.
//!
//! See Kleppmann, "How to do distributed locking" (2016), for what a token is
//! good for: storage that remembers the greatest one it has seen refuses a
//! holder whose lease ended without its notice.

use super::{Now, Token};

/// How far ahead of the clock a token may be that a client brings: a day, us.
const AHEAD_US: i64 = 24 * 3600 * 1_000_000;

/// Hands out tokens: each greater than all before it, and not less than the
/// microseconds since 1970. They fit in 53 bits until the year 2255.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    last: Token,
}

impl Tokens {
    /// The token of a first acquisition at `now`, above every counter of its keys.
    pub fn next(&mut self, now: Now, counter: Token) -> Token {
        let next = self.last.max(counter).next();
        self.last = next.max(Token(now.wall.0));
        self.last
    }

    /// Whether a client may bring this token, perhaps from another server. One that is far
    /// ahead would take the tokens of every lock with it, since all draw from one row.
    pub fn may_be_brought(&self, token: Token, now: Now) -> bool {
        token <= self.last.max(Token(now.wall.0.saturating_add(AHEAD_US)))
    }
}
