//! What is known of one owner's holds on a lock.

use super::watch::Watch;
use crate::lock::{ClientId, Lease, Mode, Owner, Token, WallMs, WallUs};

/// What is known of one owner's holds. The keyspace says whether it still has
/// them; this adds what a hash cannot hold.
#[derive(Clone, Debug)]
pub struct Hold {
    pub owner: Owner,
    /// The token of the hold under way; not known of a hold that was found.
    pub token: Option<Token>,
    /// When it was acquired.
    pub since: Option<WallUs>,
    /// The connection that took its first hold, as far as it is known.
    pub client: Option<ClientId>,
    /// Who took which of its holds, once there are several, or one belongs to a
    /// connection.
    pub watch: Option<Box<Watch>>,
}

impl Hold {
    /// A hold that somebody else took, or that was there before us.
    pub fn found(owner: Owner) -> Self {
        Self {
            owner,
            token: None,
            since: None,
            client: None,
            watch: None,
        }
    }
}

/// One owner that holds a read/write lock.
#[derive(Clone, Debug)]
pub struct Party {
    pub hold: Hold,
    /// The token that its first hold had: an upgrade begins a new one.
    pub first: Option<Token>,
    pub reads: bool,
    pub writes: bool,
    /// The lease of its read holds; `Gone` if it has none.
    pub lease: Lease,
    /// How many read holds it had when last seen: it has a lease key for each.
    pub holds: i64,
}

impl Party {
    /// An owner of which no hold is known yet.
    pub fn found(owner: Owner) -> Self {
        Self {
            hold: Hold::found(owner),
            first: None,
            reads: false,
            writes: false,
            lease: Lease::Gone,
            holds: 0,
        }
    }

    /// Whether it holds the lock in this mode.
    pub fn has(&self, mode: Mode) -> bool {
        match mode {
            Mode::Read => self.reads,
            Mode::Write => self.writes,
            Mode::Exclusive => false,
        }
    }

    /// It has no read holds any more.
    pub fn stop_reading(&mut self) {
        self.reads = false;
        self.lease = Lease::Gone;
        self.holds = 0;
    }

    /// When its read holds end, in a hash that ends then.
    pub fn end(&self, hash: Option<WallMs>) -> Option<WallMs> {
        [self.lease.end(), hash].into_iter().flatten().min()
    }

    pub(super) fn fields(&self) -> usize {
        usize::from(self.reads).saturating_add(usize::from(self.writes))
    }
}
