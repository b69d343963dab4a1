//! What is known of locks beyond what the keyspace tells: who holds them, since when and
//! until when.

mod database;
mod databases;
mod endings;
mod entry;
mod held;
mod hold;

mod lengths;
mod locks;
mod names;
mod records;
mod shared;
mod sieve;
mod takings;
mod watch;

pub use endings::{Ended, Why};
pub use entry::Entry;
pub use hold::{Begun, Hold};
pub use locks::{Locks, Place};
pub use shared::{Shared, SharedKind};
pub use takings::{Taken, Unbound};
pub use watch::{Changed, Watch};
