//! Decisions of the core on the server's keyspace, whoever asks for them. What is due, and
//! in which order, the core knows.

mod decide;
pub mod gate;
mod keyspace;
mod rights;
pub mod schedule;

pub use decide::{attend, decide, lend, now_for};
pub use keyspace::{Caller, ServerKeyspace};
