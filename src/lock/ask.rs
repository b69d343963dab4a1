//! What requests say: whose lock is to be had, renewed or released, and how.

use super::found::Mode;
use super::types::{ClientId, MonoUs, Now, Owner, Token, WaiterId};

/// A request for a lock, or for several.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub db: i32,
    pub owner: &'a [u8],
    /// The connection that asks; `None`: none that could close.
    pub client: Option<ClientId>,
    pub mode: Mode,
    /// The lease in ms, from the moment of the grant.
    pub lease: i64,
    /// Refuse a second hold of the same mode.
    pub once: bool,
    /// The hold belongs to the connection.
    pub watch: bool,
    /// How to wait if the lock is held; `None`: do not.
    pub wait: Option<Wait>,
}

/// How a request waits.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    ForEver,
    Ms(i64),
}

impl Wait {
    /// As BLOCK has it: so many ms, or 0.
    pub fn of(block: i64) -> Self {
        if block == 0 {
            Self::ForEver
        } else {
            Self::Ms(block)
        }
    }

    /// When it is over for a request that comes now.
    pub fn until(self, now: Now) -> Option<MonoUs> {
        match self {
            Self::ForEver => None,
            Self::Ms(ms) => Some(now.until(ms)),
        }
    }
}

/// Which holds are to end.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub db: i32,
    pub owner: &'a [u8],
    /// The connection that asks.
    pub client: Option<ClientId>,
    pub mode: Mode,
    /// All of them, rather than the newest.
    pub all: bool,
}

/// What becomes of a lease.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    pub db: i32,
    pub owner: &'a [u8],
    pub mode: Mode,
    /// From now, ms.
    pub lease: i64,
    /// The owner's holds belong to this connection from now on.
    pub watch: Option<ClientId>,
}

/// What became of a request that was not in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The owner has the lock.
    Granted(Token),
    /// Somebody else has it, and the request does not wait.
    Refused,
    /// The request stands in the queue under this number.
    Waits(WaiterId),
}

/// What a grant needs to know of its request.
#[derive(Clone, Debug)]
pub struct Want {
    pub owner: Owner,
    pub client: Option<ClientId>,
    pub mode: Mode,
    pub lease: i64,
    pub once: bool,
    pub watch: bool,
}

impl Want {
    pub fn of(ask: &Ask<'_>) -> Self {
        Self {
            owner: Owner::from(ask.owner),
            client: ask.client,
            mode: ask.mode,
            lease: ask.lease,
            once: ask.once,
            watch: ask.watch,
        }
    }
}
