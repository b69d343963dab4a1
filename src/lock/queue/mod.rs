//! Requests that wait: their order, and the indexes by which they are found.

mod kept;
mod keys;
mod lengths;
mod line;
mod order;
mod places;
mod portion;
mod queues;
mod rank;
mod sent_away;
mod waiter;

pub use keys::Keys;
pub use line::Line;
pub use order::Order;
pub use portion::Portion;
pub use queues::{Gone, Queues};
pub use rank::Rank;
pub use sent_away::Which;
pub use waiter::Waiter;
