//! Those who wait by subscription, as Redisson does, and the turns they have.

mod state;
mod turn;

pub use state::Subscribers;
pub use turn::{keeps_out, offer, passed, subscribed, Listening};
