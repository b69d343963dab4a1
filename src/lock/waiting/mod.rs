//! Waiting, and how a lock goes to the next.

mod again;
mod crowd;
mod drain;
mod judge;
mod wait;

pub use again::{forget_place, same_request};
pub use drain::drain;
pub use wait::wait_for;
