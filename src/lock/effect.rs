//! What the core answers with: what it wrote, and what others are to be told.

use super::key::{Bytes, Key};
use super::keyspace::Mode;
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
    /// It has the lock; the fencing token.
    Granted(i64),
    /// Its BLOCK time is over.
    TimedOut,
    /// It was carried out; what it came to.
    Done(i64),
    /// It can never be granted as things stand now.
    Refused(Refusal),
}

/// Writes are carried out as soon as they are decided ([`Keyspace::write`]), the
/// rest by whoever called the core, in order, when the decision is complete.
///
/// [`Keyspace::write`]: super::Keyspace::write
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The free key becomes the plain lock of `owner`, with so many holds:
    /// HSET key owner holds, PEXPIREAT key at.
    Take {
        key: Key,
        owner: Bytes,
        holds: i64,
        at: i64,
    },
    /// `owner` now has `holds` holds in this mode, `by` more than before. In a
    /// plain lock and for readers the field is `owner`, for a writer
    /// `owner:write`. HSET if there were none before, else HINCRBY.
    Count {
        key: Key,
        owner: Bytes,
        mode: Mode,
        holds: i64,
        by: i64,
    },
    /// `owner` has no holds in this mode any more, others have: HDEL.
    Drop { key: Key, owner: Bytes, mode: Mode },
    /// The read/write lock is in this mode now: HSET key mode read|write. Creates
    /// the key if it is not there.
    SetMode { key: Key, mode: Mode },
    /// The lease key of the reader's hold number `index` is there, with the lock's
    /// name as its value: SET … PXAT at; without a TTL if `at` is `None`.
    Lease {
        key: Key,
        owner: Bytes,
        index: i64,
        at: Option<i64>,
    },
    /// The lease key of that hold ends at this wall-clock ms: PEXPIREAT.
    LeaseAt {
        key: Key,
        owner: Bytes,
        index: i64,
        at: i64,
    },
    /// The lease key of that hold is gone: DEL, if it is there and this lock's.
    EndLease { key: Key, owner: Bytes, index: i64 },
    /// The fencing counter beside the lock has this token now: SET, with the TTL
    /// that it had.
    Fence { key: Key, token: i64 },
    /// The key ends at this wall-clock ms: PEXPIREAT.
    ExpireAt { key: Key, at: i64 },
    /// The lock is free: DEL.
    Delete { key: Key },
    /// An event of rlock's own on the key.
    Tell { key: Key, event: Event },
    /// Others than rlock's own waiters may take the lock: wake those who wait for
    /// it by subscription.
    Wake { key: Key, whom: Whom },
    /// The key went to a waiter, or to a reader beside others, and was not free in
    /// between: those who wait by subscription would go short.
    Passed { key: Key, shared: bool },
    /// A blocked request gets its reply.
    Answer { waiter: WaiterId, outcome: Outcome },
    /// A watchdog hold was lost: its connection is to be closed.
    Close { client: u64 },
}

/// The effects of one request or one tick, in order.
pub type Effects = Vec<Effect>;
