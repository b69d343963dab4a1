//! Fencing tokens by the clock: no key is needed for them, and they keep rising
//! across a restart as far as the clock does.
//!
//! See Kleppmann, "How to do distributed locking" (2016), for what a token is
//! good for: storage that remembers the greatest one it has seen refuses a
//! holder whose lease ended without its notice.

use super::time::Now;

/// Hands out tokens: each greater than all before it, and not less than the
/// microseconds since 1970. They fit in 53 bits until the year 2255.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    last: i64,
}

impl Tokens {
    /// The token of a first acquisition at `now`.
    pub fn next(&mut self, now: Now) -> i64 {
        self.last = self.last.saturating_add(1).max(now.wall_us);
        self.last
    }
}
