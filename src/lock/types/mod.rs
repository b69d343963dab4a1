//! Types for what must not be mixed. They stand below all else: nothing here knows of
//! locks.

mod client;
mod clock;
mod owner;
mod token;
mod waiter;

pub use client::ClientId;
pub use clock::{ListenedUs, Moment, MonoUs, Now, WallMs, WallUs};
pub use owner::Owner;
pub use token::Token;
pub use waiter::{Next, WaiterId};
