//! The core: who holds a lock, who waits for it, and what follows from each
//! request. No server types, no unsafe code, no clock of its own.
//!
//! The keyspace is the only truth about who holds a lock. A decision looks at it through
//! [`Keyspace`], writes to it at once, hands on what has become free when it is drained,
//! and leaves [`Notices`]: the shell in `crate::server` tells them when the decision is
//! over. What the core remembers beside the keyspace (queues, deadlines, tokens) is lost
//! with a restart, and nothing depends on it for exclusion.
//!
//! [`Decider`] is the way in, for one request ([`request`]) or for what is due without
//! one ([`run`](mod@run)). `docs/architecture.md` has a line on each file here, the way of
//! a RELEASE and of a key event through them, the invariants, and the words.

mod address;
mod agenda;
mod ask;
mod away;
mod closed;
mod core;
mod counters;
mod deadlines;
mod deadlock;
mod decide;
mod decision;
mod durations;
mod fifo;
mod found;
mod grant;
mod head;
mod heard;
mod heartbeats;
mod in_flight;
mod key;
mod keyspace;
pub mod kind;
mod leases;
mod leaving;
#[cfg(test)]
mod memory;
mod modes;
mod moments;
mod moved;
mod notice;
mod ours;
mod pools;
mod queue;
mod ready;
mod reconcile;
mod refusal;
mod renewals;
mod request;
mod run;
mod sessions;
mod silence;
mod subscribers;
mod table;
mod take_back;
#[cfg(test)]
mod tests;
mod timeouts;
mod tokens;
mod types;
mod waiting;
mod wanted;
mod watchdog;
mod work;
mod write;

pub use address::Address;
pub use agenda::{Due, When};
pub use ask::{Aim, Ask, Ended, Fence, Once, Only, Renewal, Share, Verdict, Wait};
pub use core::{Contended, Core, Cursor, Forgetting, Held, Known, Limits, Rules, Waiting, Wanted};
pub use decide::Decider;
pub use decision::Decision;
pub use found::{
    leases_looked_at, Counter, Foreign, Hint, Holder, Kind, Lease, Look, Mode, Pool, Slot,
    MOST_READS,
};
pub use heard::Note;
use key::Bytes;
pub use key::{exchanged, place, Key, PLACES};
pub use keyspace::{Act, Keyspace, Part};
pub use kind::permits::limit::limit;
pub use leaving::{disconnected, leave, let_all_leave};
pub use moved::demoted;
pub use notice::{Event, Loss, Notice, Notices, Outcome, Reason, WakeTarget};
pub use reconcile::Cause;
pub use refusal::{Crowd, Link, NoPermits, Refusal};
pub use request::{
    acquire, acquire_many, force, give_up_only_held, release, release_many, renew, renew_many,
    take_free, MOST_KEYS,
};
pub use run::{attend, end_few, run, Gate, Occasion, Outside};
pub use silence::heartbeat;
pub use subscribers::Listening;
pub use timeouts::cancel;
use types::ListenedUs;
pub use types::{ClientId, MonoUs, Now, Owner, Token, WaiterId, WallMs, WallUs};
pub use watchdog::ROUND_MS;
pub use write::Write;
