//! What others are to be told of a decision.

use super::key::Key;
use super::refusal::Refusal;
use super::types::{ClientId, Token, WaiterId};
use super::write::Write;

/// The keyspace events of rlock itself (`rlock.acquired` and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Acquired,
    Released,
    Renewed,
    Expired,
    Forced,
    Evicted,
}

/// Who is woken of those who wait by subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// One who waits for a plain lock.
    One,
    /// One who waits for a read/write lock.
    OneShared,
    /// All who wait for a read/write lock: readers may enter.
    AllShared,
}

/// How a request that waited ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has the lock.
    Granted(Token),
    /// Its BLOCK time is over.
    TimedOut,
    /// It was carried out; what it came to.
    Done(i64),
    /// It can never be granted as things stand now.
    Refused(Refusal),
}

/// One thing to tell, in order, when the decision is complete. The core reads none of
/// them back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something was written.
    Wrote { key: Key, write: Write },
    /// An event of rlock's own on the key.
    Told { key: Key, event: Event },
    /// Others than rlock's own waiters may take the lock: wake those who wait for
    /// it by subscription.
    Wake { key: Key, whom: Whom },
    /// It is to be found out who waits for the key by subscription: it went to a waiter,
    /// or to a reader beside others, and was not free in between; or it is long since
    /// they were last looked for.
    WhoListens { key: Key, shared: bool },
    /// A blocked request gets its reply.
    Answer { waiter: WaiterId, outcome: Outcome },
    /// A watchdog hold was lost: its connection is to be closed.
    Close { client: ClientId },
}

/// The notices of one request or one tick, in order.
pub type Notices = Vec<Notice>;
