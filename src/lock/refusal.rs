//! Why the core refuses a request. The texts a client sees are in `crate::error`.

use super::found::{Foreign, Mode, Pool};
use super::key::Key;
use super::types::{Owner, Token};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key is no lock: WRONGTYPE.
    NotALock { key: Key, why: Foreign },
    /// The owner does not hold the lock, or holds it in another mode: NOTHELD.
    NotHeld {
        key: Key,
        owner: Owner,
        asked: Mode,
        held_for: Option<Mode>,
    },
    /// The owner `*` holds the lock already: HELD.
    Held { key: Key, owner: Owner },
    /// Its hold is to have a new token, and it has several: HELD.
    ManyHolds { key: Key, owner: Owner },
    /// The owner holds the name as another kind of lock: WRONGMODE.
    OtherMode {
        key: Key,
        owner: Owner,
        held_for: Mode,
        asked: Mode,
    },
    /// It asks for permits, or gives them back, as cannot be.
    Permits { key: Key, why: NoPermits },
    /// The lease key that the reader needs is another lock's, or no lease key.
    LeaseKeyTaken { key: Key, owner: Owner },
    /// What stands in the place of the lock's fencing counter cannot be raised.
    CounterUnusable { key: Key },
    /// The lock's fencing counter stands at the greatest token, or above it.
    CounterSpent { key: Key },
    /// The clock is beyond the greatest token.
    NoToken,
    /// The token that the client brings is greater than all that were given for the lock, and
    /// far ahead of the clock.
    TokenAhead { token: Token },
    /// The lock can have no fencing counter, which would lie in another slot.
    NoCounter { key: Key },
    /// The user may not have this lock any more, for which it has waited: NOPERM.
    NoPermission { key: Key },
    /// The server has started, and may have lost locks: it grants nothing for so many ms
    /// more.
    NotYet { ms: i64 },
    /// The request would close a cycle of waiting: DEADLOCK.
    Deadlock { cycle: Vec<Link> },
    /// As many requests wait as may: MAXWAITERS.
    TooManyWait { which: Crowd, most: usize },
    /// A key beside the lock, or beside the first of several, is needed that may be on another
    /// node, for their slot is on its way: TRYAGAIN.
    Migrating { key: Key },
    /// The lock ended between a look at it and the write that was to prolong it. Looked
    /// at once more, it is free; nobody is told of this.
    Vanished { key: Key },
    /// The tag of a request is that of another wait or hold of its connection.
    TagInUse { tag: Box<[u8]> },
    /// Its owner has asked for the same again, with ONCE: SUPERSEDED.
    Superseded,
    /// The server is no master any more: UNBLOCKED, as the server itself says to blocked clients.
    NoLongerMaster,
    /// Another node serves the slot of the lock: MOVED.
    SlotMoved { key: Key },
    /// Nobody listens to its channel, and so would get to know of the grant: it ends without a
    /// message.
    NobodyListens,
    /// The hold count cannot rise any more.
    TooManyHolds { key: Key, owner: Owner },
}

/// Of whom too many would wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crowd {
    Everybody,
    AtKey(Key),
    OnConnection,
}

/// Why a request about permits is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPermits {
    /// They are held with another limit: WRONGLIMIT.
    OtherLimit(Pool),
    /// More are asked for than there are now: WRONGLIMIT.
    AboveLimit(Pool),
    /// With ONCE the owner asks for another number than it holds: HELD.
    OtherShare { owner: Owner, held: i64 },
    /// The owner holds fewer than it gives back: NOTHELD.
    TooFew { owner: Owner, held: i64 },
    /// Nobody holds any: NOTHELD.
    Free,
    /// The name is held, but not by permits: WRONGMODE.
    OtherKind,
}

/// One owner waits for another, on this key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub waits: Owner,
    pub on: Key,
    pub for_: Owner,
}
