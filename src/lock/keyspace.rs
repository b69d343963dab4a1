//! What the core asks of the keyspace, the only truth about who holds a lock.
//!
//! The server's keyspace implements this (`server::run::keyspace`), and so does one
//! in memory (`lock::memory`) for the tests of the core.

use super::address::Address;
use super::found::{Counter, Hint, Holder, Kind, Look, Slot};
use super::key::Key;
use super::kind;
use super::types::{ClientId, Owner};
use super::write::Write;

/// Some of the fields of a lock that several may hold.
#[derive(Debug, Default)]
pub struct Part {
    pub holders: Vec<Holder>,
    /// A field that is no hold.
    pub wrong: Option<Owner>,
    /// Where the next part begins.
    pub next: Option<u64>,
}

impl Part {
    /// Of these fields.
    pub fn of(
        kind: Option<Kind>,
        fields: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        next: Option<u64>,
    ) -> Self {
        let mut part = Self {
            next,
            ..Self::default()
        };
        for (field, value) in fields.into_iter().filter(|(field, _)| field != kind::MODE) {
            match kind::holder_of(kind, &field, &value) {
                Some(holder) => part.holders.push(holder),
                None => part.wrong = Some(Owner::from(&field[..])),
            }
        }
        part
    }
}

/// What the rights of a user are looked at for, long after its request was let in.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// It waited for these keys, and can have them.
    Acquire(&'a [Key]),
    /// Its connection keeps this lock.
    Renew(&'a Key),
}

/// Lock state. A key whose lease has run out reads as free.
pub trait Keyspace {
    /// The key as `owner` sees it. Of a read/write lock the owner's lease keys are
    /// looked at, as [`leases_looked_at`](super::leases_looked_at) says.
    fn look(&mut self, key: &Key, owner: &[u8]) -> Look {
        self.look_with_hint(key, owner, Hint::default())
    }
    /// The same, where something is known of the plain lock.
    fn look_with_hint(&mut self, key: &Key, owner: &[u8], known: Hint<'_>) -> Look;
    /// All fields that stand for holds, also those of readers whose lease is gone;
    /// empty when the lock is free or no lock. Where one of the first fields is no hold, no
    /// more are read.
    fn holders(&mut self, key: &Key) -> Vec<Holder> {
        self.some_holders(key, usize::MAX)
    }
    /// The same of those that are found in about so many steps.
    fn some_holders(&mut self, key: &Key, steps: usize) -> Vec<Holder>;
    /// Some of the fields of a lock that several may hold, behind this cursor; 0: the first ones.
    /// As by HSCAN: what is there all the time comes at least once. Of readers without their
    /// leases.
    fn some_fields(&mut self, key: &Key, cursor: u64) -> Part;
    /// Whether this field of the hash is there, and is no hold.
    fn is_wrong(&mut self, key: &Key, field: &[u8]) -> bool;
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
    fn in_cluster(&self) -> bool;
    /// Where the lock's slot is. Nobody asks the server that about a request that has
    /// waited.
    fn slot(&mut self, key: &Key) -> Slot;
    /// Whether a message to this address would reach its client.
    fn reaches(&mut self, address: &Address) -> bool;
    /// Whether the user of this connection may do this now, who could when it asked for it.
    fn may(&mut self, client: ClientId, act: Act<'_>) -> bool;
    /// Changes the lock at once. Whether it changed anything.
    fn write(&mut self, key: &Key, write: &Write) -> bool;
}
