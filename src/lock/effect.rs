//! What the core answers with. It decides; whoever called it carries out the
//! effects, in order: first the writes, then what others are told.

use super::key::{Bytes, Key};
use super::refusal::Refusal;

/// A waiter's number, in order of arrival over all locks.
pub type WaiterId = u64;

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

/// How a request that waited ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has the lock; the fencing token.
    Granted(i64),
    /// Its BLOCK time is over.
    TimedOut,
    /// It can never be granted as things stand now.
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The free key becomes the lock of `owner`, with one hold:
    /// HSET key owner 1, PEXPIREAT key at.
    Take { key: Key, owner: Bytes, at: i64 },
    /// `owner` now has `holds` holds, `by` more than before: HINCRBY.
    Count {
        key: Key,
        owner: Bytes,
        holds: i64,
        by: i64,
    },
    /// The lease ends at this wall-clock ms: PEXPIREAT.
    ExpireAt { key: Key, at: i64 },
    /// The lock is free: DEL.
    Delete { key: Key },
    /// An event of rlock's own on the key.
    Tell { key: Key, event: Event },
    /// The lock was left free: wake those who wait for it by subscription.
    /// `shared`: it was a read/write lock.
    Wake { key: Key, shared: bool },
    /// A blocked request gets its reply.
    Answer { waiter: WaiterId, outcome: Outcome },
}

/// The effects of one request or one tick, in order.
pub type Effects = Vec<Effect>;
