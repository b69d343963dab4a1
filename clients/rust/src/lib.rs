//! Locks of rlock, a module for Redis and Valkey: leases, a queue in which nobody is
//! overtaken, fencing tokens, and holders who learn at once of a loss. Where the server does not
//! have the module the same program has the same locks by a function library, with
//! less of that: see [`Locks::backend`].
//!
//! ```no_run
#![doc = include_str!("../examples/first.rs")]
//! ```
//!
//! - [`Locks`] is made once; [`Locks::acquire`] asks for a lock, which becomes a [`Hold`].
//! - A hold is renewed as long as this process is connected. If it is lost all
//!   the same, [`Hold::lost`] reports it, with the [`Reason`].
//! - A paused process may believe for a while that it has a lock that it has lost. Only
//!   storage that refuses smaller [tokens](Hold::token) prevents damage.
//! - Without async: [`blocking`].

mod acquire;
mod backend;
pub mod blocking;
// For the command line: one clock on both sides.
#[doc(hidden)]
pub mod clock;
mod error;
// For the command line, which asks servers itself.
#[doc(hidden)]
pub mod finding;
mod hold;
mod job;
#[doc(hidden)]
pub mod library;
mod locks;
mod process;
mod quorum;
mod request;
mod session;
mod slots;
mod state;
mod sticky;
// For the command line: its other connections need it too.
#[doc(hidden)]
pub mod tls;
mod turn;
mod using;
mod way;

pub use acquire::Acquire;
pub use backend::Backend;
pub use error::{Error, Reason};
pub use hold::Hold;
pub use job::Job;
pub use locks::Locks;
pub use quorum::{Quorum, QuorumAcquire, QuorumHold};
#[doc(hidden)]
pub use session::name_connections;
pub use sticky::{Sticky, StickyBuilder};
pub use using::Use;
pub use way::GiveWay;
