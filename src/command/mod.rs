//! The commands, one file each: its arguments, what it asks of the core, its reply.

mod acquire;
mod args;
mod force;
mod info;
mod macquire;
mod mrelease;
mod mrenew;
mod owner;
mod release;
mod renew;
mod top;
mod waiters;

pub use acquire::Acquire;
pub use force::Force;
pub use info::Info;
pub use macquire::Macquire;
pub use mrelease::Mrelease;
pub use mrenew::Mrenew;
pub use owner::Owner;
pub use release::Release;
pub use renew::Renew;
pub use top::Top;
pub use waiters::Waiters;
