//! The core: who holds a lock, who waits for it, and what follows from each
//! request. No server types, no unsafe code, no clock of its own.
//!
//! Data flows one way. A command is parsed into a request; the core looks at the
//! key through [`Keyspace`], decides, and answers with [`Notices`]; the shell in
//! `crate::server` carries them out and replies. The keyspace is the only truth
//! about who holds a lock. What the core remembers beside it (queues, deadlines,
//! tokens) is lost with a restart, and nothing depends on it for exclusion.
//!
//! Where to look: [`acquire`] and [`release`] for the commands on one key, [`many`]
//! for those on several; [`shared`] and [`readers`] for read/write locks; [`queue`]
//! for who waits and where, [`waiting`] for how a lock goes to the next, [`judge`]
//! for the other requests of an owner that got one, [`grants`] for replies that may
//! be lost; [`deadlock`] for who waits for whom; [`watch`] and [`bonds`] for holds
//! that belong to a connection, [`lapse`] for those that run out behind the gate; [`turns`] for those who wait by subscription;
//! [`sight`] for what was known of a key against what it is, [`expiry`] for what
//! happens when a key ends or changes under us, [`notes`] for how that is heard of,
//! [`moved`] for RENAME, SWAPDB and flushes, [`away`] for a cluster's slots that move;
//! [`ask`] for what requests say, [`types`] for moments, numbers and names that must not
//! be mixed; [`run`] for what is due without a request, and in which order.

mod ask;
mod away;
mod closed;
mod core;
mod counters;
mod deadlines;
mod deadlock;
mod decide;
mod decision;
mod found;
mod freed;
mod grant;
mod head;
mod heard;
mod in_flight;
mod key;
mod keyspace;
pub mod layout;
mod leases;
mod leaving;
#[cfg(test)]
mod memory;
mod modes;
mod moved;
mod notes;
mod notice;
mod queue;
mod ready;
mod reconcile;
mod refusal;
mod renewals;
mod request;
mod run;
mod subscribers;
mod table;
mod take_back;
#[cfg(test)]
mod tests;
mod timeouts;
mod tokens;
mod types;
mod waiting;
mod watchdog;
mod work;
mod write;

pub use ask::{Ask, Ended, Renewal, Verdict, Wait};
pub use core::{Contended, Core, Rules, Stats, Waiting};
pub use decide::Decider;
pub use decision::Decision;
pub use found::{
    leases_looked_at, Counter, Foreign, Holder, Kind, Lease, Look, Mode, Slot, MOST_READS,
};
pub use heard::Note;
use key::Bytes;
pub use key::Key;
pub use keyspace::Keyspace;
pub use leaving::leave;
pub use moved::demoted;
pub use notice::{Event, Notice, Notices, Outcome, Whom};
pub use reconcile::Cause;
pub use refusal::{Link, Refusal};
pub use request::{
    acquire, acquire_many, force, release, release_many, renew, renew_many, MOST_KEYS,
};
pub use run::{attend, run, Gate, Occasion, Outside};
pub use subscribers::Listening;
pub use types::{ClientId, MonoUs, Now, Owner, Token, WaiterId, WallMs, WallUs};
pub use watchdog::ROUND_MS;
pub use write::Write;
