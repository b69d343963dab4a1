//! The commands, one file each: its arguments, what it asks of the core, its reply.

mod acquire;
mod args;
mod force;
mod info;
mod owner;
mod release;
mod renew;

pub use acquire::Acquire;
pub use force::Force;
pub use info::Info;
pub use owner::Owner;
pub use release::Release;
pub use renew::Renew;
