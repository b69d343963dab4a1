//! What the core writes to the keyspace.

use super::found::{Mode, Pool};
use super::types::{Owner, Token, WallMs};

/// A change of one key, carried out as soon as it is decided ([`Keyspace::write`]).
///
/// [`Keyspace::write`]: super::Keyspace::write
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// The free key becomes the plain lock of `owner`, with so many holds:
    /// HSET key owner holds, PEXPIREAT key at.
    Take {
        owner: Owner,
        holds: i64,
        at: WallMs,
    },
    /// The plain lock that `from` holds once becomes `to`'s: HSET key to 1, HDEL key from,
    /// PEXPIREAT key at.
    HandOver { from: Owner, to: Owner, at: WallMs },
    /// `owner` now has `holds` holds in this mode, `by` more than before. In a
    /// plain lock and for readers the field is `owner`, for a writer
    /// `owner:write`. HSET key field holds.
    Count {
        owner: Owner,
        mode: Mode,
        holds: i64,
        by: i64,
    },
    /// `owner` has no holds in this mode any more, others have: HDEL.
    Drop { owner: Owner, mode: Mode },
    /// `owner` now has so many permits until then: HSET key owner permits@until; `None`: it
    /// has none any more: HDEL. With what is out then, and in the same HSET if there is one:
    /// HSET key mode 'permits asked limit out'; `None`: that stays. Creates the key if it is
    /// not there.
    Permit {
        owner: Owner,
        held: Option<(i64, WallMs)>,
        pool: Option<Pool>,
    },
    /// The permits of the lock are these now: HSET key mode 'permits asked limit out'.
    SetPool(Pool),
    /// The read/write lock is in this mode now: HSET key mode read|write. Creates
    /// the key if it is not there.
    SetMode(Mode),
    /// The lease key of the reader's hold number `index` is there, with the lock's
    /// name as its value: SET … PXAT at; without a TTL if `at` is `None`.
    Lease {
        owner: Owner,
        index: i64,
        at: Option<WallMs>,
    },
    /// The lease key of that hold ends then: PEXPIREAT.
    LeaseAt {
        owner: Owner,
        index: i64,
        at: WallMs,
    },
    /// The lease key of that hold is gone: DEL, if it is there and this lock's.
    EndLease { owner: Owner, index: i64 },
    /// The fencing counter beside the lock has this token now: SET, with the TTL that it
    /// had; with `until` it lives so long at least, unless it was there without a TTL.
    Fence { token: Token, until: Option<WallMs> },
    /// The key ends then: PEXPIREAT.
    ExpireAt(WallMs),
    /// The lock is free: DEL.
    Delete,
}
