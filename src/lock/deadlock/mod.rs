//! Who waits for whom, and whether that goes round in a cycle.
//!
//! The unit is the owner, over all its connections. One waits for another when a
//! request of the one conflicts with a live hold of the other (a hard edge), or
//! stands behind a conflicting request of the other in a queue (a soft edge); the
//! terms are those of PostgreSQL's lock manager (src/backend/storage/lmgr/README).
//!
//! Most who stand in a queue wait in no other place. Such a one waits for nobody
//! for whom the one behind it does not wait too, so the search steps over it; only
//! a writer that stands before a reader is looked at, for it waits for readers.

//!
//! A search takes so many steps on the spot, and no more. What it has not found out by then
//! the [`Inquiry`] does, some steps at a time between other clients' requests; the request
//! waits meanwhile like any other.

mod cycles;
mod graph;
mod inquire;
mod inquiry;
mod node;
mod pass;
mod proof;
mod search;
mod steps;
mod way_out;

pub use cycles::{closes_a_cycle, cycle_through, is_in_cycle, other_upgrade, suspect, upgrades};
#[cfg(test)]
pub use graph::Graph;
pub use inquire::inquire;
pub use inquiry::Inquiry;
pub use proof::proven;
#[cfg(test)]
pub use steps::Steps;
pub use steps::TooFar;
pub use way_out::{finds_a_way, let_past};
