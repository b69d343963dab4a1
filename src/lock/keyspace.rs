//! What the core asks of the keyspace, the only truth about who holds a lock.
//!
//! The server's keyspace implements this (`server::keyspace`), and so does one
//! in memory (`memory`) for the tests of the core.

use super::key::Key;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A plain lock: one owner, a hash of one field.
    Exclusive,
    /// A read lock of a read/write lock.
    Read,
    /// A write lock of a read/write lock.
    Write,
}

/// What a key is, as far as locks are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such key: the lock is free.
    Free,
    /// A plain lock, held.
    Plain,
    /// A read/write lock, held in this mode.
    ReadWrite(Mode),
    /// A key that is no lock.
    Foreign(Foreign),
}

/// Why a key is no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It is no hash.
    OtherType,
    /// It is a hash, but not laid out as a lock.
    OtherHash,
}

/// A key as one owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub kind: Kind,
    /// How many plain holds the owner that was asked for has; 0: none.
    pub holds: i64,
    /// The mode in which that owner holds a read/write lock.
    pub shared: Option<Mode>,
    /// When the key expires, in wall-clock ms; `None`: it has no TTL.
    pub expires: Option<i64>,
    /// It was there until this very look, which found that it had run out.
    pub ran_out: bool,
}

impl Look {
    /// A key that does not exist.
    pub const FREE: Self = Self {
        kind: Kind::Free,
        holds: 0,
        shared: None,
        expires: None,
        ran_out: false,
    };
}

/// One owner's holds on a lock, as the keyspace has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub owner: Vec<u8>,
    pub mode: Mode,
    pub holds: i64,
}

/// Read access to lock state. A key whose lease has run out reads as free.
pub trait Keyspace {
    /// The key as `owner` sees it.
    fn look(&mut self, key: &Key, owner: &[u8]) -> Look;
    /// All who hold the lock; empty when it is free or no lock.
    fn holders(&mut self, key: &Key) -> Vec<Holder>;
}
