//! What others are to be told of a decision.

use super::address::Address;
use super::key::Key;
use super::refusal::Refusal;
use super::types::{ClientId, Owner, Token, WaiterId};
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
pub enum WakeTarget {
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

/// Why a hold has ended other than by its owner's will, or is not bound any more to what
/// it was bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Expired,
    Forced,
    Deleted,
    Evicted,
    Flushed,
    Overwritten,
    /// The server is no master any more.
    Demoted,
    /// The key has another name or database now, or another node has its slot.
    Moved,
    /// The same owner has bound it to another connection, or by another tag.
    Rebound,
    /// Its owner has released it by another connection.
    Released,
    /// The connection that watched it was not heard of for as long as it may be silent, and
    /// somebody waited.
    Silent,
}

impl Reason {
    pub const ALL: [Self; 11] = [
        Self::Expired,
        Self::Forced,
        Self::Deleted,
        Self::Evicted,
        Self::Flushed,
        Self::Overwritten,
        Self::Demoted,
        Self::Moved,
        Self::Rebound,
        Self::Released,
        Self::Silent,
    ];
}

/// A hold that a connection was bound to is lost to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub key: Key,
    pub owner: Owner,
    /// The connection whose watchdog kept it.
    pub watcher: Option<ClientId>,
    /// Where that is told: to that connection, if there is one.
    pub address: Option<Address>,
    pub reason: Reason,
    /// The connection that it is bound to from now on, if its owner has bound it anew.
    pub heir: Option<ClientId>,
}

/// One thing to tell, in order, when the decision is complete. The core reads none of
/// them back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something was written.
    Wrote { key: Key, write: Write },
    /// An event of rlock's own on the key.
    Event { key: Key, event: Event },
    /// Others than rlock's own waiters may take the lock: wake those who wait for
    /// it by subscription.
    Wake { key: Key, target: WakeTarget },
    /// The same of a key that was presumed to be a lock: nobody is to hear of it who does
    /// not wait for it.
    WakeListeners { key: Key, target: WakeTarget },
    /// It is to be found out who waits for the key by subscription: it went to a waiter,
    /// or to a reader beside others, and was not free in between; or it is long since
    /// they were last looked for.
    WhoListens { key: Key, shared: bool },
    /// A request that waits gets its reply: its blocked client, or by a message.
    Answer {
        waiter: WaiterId,
        to: Option<Address>,
        outcome: Outcome,
        /// It is granted, wants to know, and somebody waits.
        wanted: bool,
    },
    /// Somebody waits for what is held. A connection that watches it and cannot be told is to be
    /// closed.
    Wanted { address: Address, closes: bool },
    /// A hold is lost: whoever it was bound to is to know. A connection that watched it
    /// and cannot be told is to be closed.
    Lost(Loss),
}

/// The notices of one request or one tick, in order.
pub type Notices = Vec<Notice>;
