//! Fencing tokens by the clock: no key is needed for them, and they keep rising
//! across a restart as far as the clock does. Where a lock has a counter beside it,
//! as Redisson's RFencedLock keeps one, its tokens rise above that and are written
//! there, so that both draw from one row of numbers whatever the clock does.
//!
//! A counter that is ahead of the clock lifts the tokens of its own lock and of no other:
//! whoever may write one key could take the tokens of every lock with it.
//!
//! See Kleppmann, "How to do distributed locking" (2016), for what a token is
//! good for: storage that remembers the greatest one it has seen refuses a
//! holder whose lease ended without its notice.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::{Key, Now, Token};

/// How far ahead of the clock a token may be that a client brings: a day, us.
const AHEAD_US: i64 = 24 * 3600 * 1_000_000;

/// Hands out tokens. They fit in 53 bits until the year 2255.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The last by the clock: each is greater than all before it, and not less than the
    /// microseconds since 1970.
    last: Token,
    lifted: Lifted,
}

impl Tokens {
    /// The token of holds that begin at `now`, above this one, which is the greatest that
    /// their locks have had. `None`: there is none any more.
    pub fn next(&mut self, now: Now, above: Token) -> Option<Token> {
        let by_clock = self.last.next().max(Token(now.wall.0));
        let token = by_clock.max(above.next());
        if token > Token::MOST {
            return None;
        }
        if token == by_clock {
            self.last = by_clock;
        }
        Some(token)
    }

    /// The greatest that was given for this lock, if it was ahead of those by the clock.
    pub fn before(&self, key: &Key) -> Token {
        self.lifted.get(key).unwrap_or(Token::BEFORE_FIRST)
    }

    /// This one was given for the lock. What is ahead of the clock is remembered, for the
    /// counter that lifted it may be lost.
    pub fn given(&mut self, key: &Key, token: Token) {
        if token > self.last {
            self.lifted.set(key, token);
        }
    }

    /// A lock is there under another name now, with the holds that it has.
    pub fn moved(&mut self, from: &Key, to: &Key) {
        let token = self.before(from).max(self.before(to));
        self.given(to, token);
    }

    /// Of how many locks it is remembered how far ahead they are.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.lifted
            .young
            .len()
            .saturating_add(self.lifted.old.len())
    }

    /// Whether a client may bring this token, perhaps from another server, for a lock that
    /// has had none that is greater.
    pub fn may_be_brought(&self, token: Token, now: Now) -> bool {
        token <= self.last.max(Token(now.wall.0.saturating_add(AHEAD_US)))
    }
}

/// How many locks each of two generations is about.
const GENERATION: usize = 2048;

/// Tokens that are ahead of the clock, by a hash of their lock's name that nobody can foresee:
/// of the last 2,048 such names at least. When the young generation is full, the old one goes. A
/// name is one in all databases, for whole databases are exchanged.
#[derive(Clone, Debug, Default)]
struct Lifted {
    hasher: RandomState,
    young: HashMap<u64, Token>,
    old: HashMap<u64, Token>,
}

impl Lifted {
    fn get(&self, key: &Key) -> Option<Token> {
        // So it is as good as always.
        if self.young.is_empty() && self.old.is_empty() {
            return None;
        }
        self.at(self.hash(key))
    }

    fn at(&self, hash: u64) -> Option<Token> {
        let known = self.young.get(&hash).or_else(|| self.old.get(&hash));
        known.copied()
    }

    fn set(&mut self, key: &Key, token: Token) {
        let hash = self.hash(key);
        if token == Token::MOST {
            // Nothing is above it: once its counter is gone the lock begins anew.
            self.young.remove(&hash);
            self.old.remove(&hash);
            return;
        }
        let token = self.at(hash).map_or(token, |before| before.max(token));
        if self.young.len() >= GENERATION && !self.young.contains_key(&hash) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, token);
    }

    fn hash(&self, key: &Key) -> u64 {
        self.hasher.hash_one(&key.name)
    }
}
