//! Requests that wait: their order, and the indexes by which they are found.

mod queues;
mod rank;
mod requests;
mod waiter;

pub use queues::{Gone, Queues};
pub use rank::Rank;
pub use waiter::Waiter;
