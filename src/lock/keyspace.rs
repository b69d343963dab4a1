//! What the core asks of the keyspace, the only truth about who holds a lock.
//!
//! The server's keyspace implements this (`server::run::keyspace`), and so does one
//! in memory (`lock::memory`) for the tests of the core.

use super::address::Address;
use super::found::{Counter, Holder, Look, Slot};
use super::key::Key;
use super::write::Write;

/// Lock state. A key whose lease has run out reads as free.
pub trait Keyspace {
    /// The key as `owner` sees it. Of a read/write lock the owner's lease keys are
    /// looked at, as [`leases_looked_at`](super::leases_looked_at) says.
    fn look(&mut self, key: &Key, owner: &[u8]) -> Look;
    /// All fields that stand for holds, also those of readers whose lease is gone;
    /// empty when the lock is free or no lock.
    fn holders(&mut self, key: &Key) -> Vec<Holder>;
    /// Whether the lease key of this read hold may be written: it is not there, or
    /// is this lock's (its value is the lock's name, or Redisson's `1`).
    fn may_lease(&mut self, key: &Key, owner: &[u8], index: i64) -> bool;
    /// The fencing counter beside the lock.
    fn counter(&mut self, key: &Key) -> Counter;
    /// Whether the key can be looked at in the decision under way. In a cluster a
    /// command sees the keys of its own slot alone, for servers look any other name up
    /// in that slot too.
    fn is_at_hand(&self, key: &Key) -> bool;
    /// Whether a key beside the lock that is not here is nowhere else: always, but in a
    /// cluster while the slot is on its way from one node to another.
    fn slot_stays(&mut self, key: &Key) -> bool;
    /// Whether keys may be on another node: in a cluster.
    fn has_neighbours(&self) -> bool;
    /// Where the lock's slot is. Nobody asks the server that about a request that has
    /// waited.
    fn slot(&mut self, key: &Key) -> Slot;
    /// Whether a client that is told there would hear it.
    fn hears(&mut self, address: &Address) -> bool;
    /// Changes the lock at once. Whether it changed anything.
    fn write(&mut self, key: &Key, write: &Write) -> bool;
}
