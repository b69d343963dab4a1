//! Waiting, and how a lock goes to the next.

mod drain;
mod judge;
mod wait;

pub use drain::drain;
pub use wait::wait_for;
