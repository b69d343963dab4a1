//! Keys as locks are laid out in them, read: the hash, the lease keys beside it, the
//! fencing counter, and in a cluster whose their slot is.

pub mod counter;
pub mod hash;
pub mod lease_keys;
mod one_key;
pub mod slots;

pub use one_key::{Named, OneKey};
