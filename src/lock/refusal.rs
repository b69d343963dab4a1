//! Why the core refuses a request. The texts a client sees are in `crate::error`.

use super::key::{Bytes, Key};
use super::keyspace::{Foreign, Mode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key is no lock: WRONGTYPE.
    NotALock { key: Key, why: Foreign },
    /// FORCE on a lock without a TTL, which may be somebody's data: WRONGTYPE.
    NoLease { key: Key },
    /// The owner does not hold the lock, or holds it in another mode: NOTHELD.
    NotHeld {
        key: Key,
        owner: Bytes,
        held_for: Option<Mode>,
    },
    /// ONCE, and the owner holds the lock already: HELD.
    Held { key: Key, owner: Bytes },
    /// The owner holds the name as another kind of lock: WRONGMODE.
    OtherMode {
        key: Key,
        owner: Bytes,
        held_for: Mode,
    },
    /// The hold count cannot rise any more.
    TooManyHolds { key: Key, owner: Bytes },
}
