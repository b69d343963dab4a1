//! Keys as locks are laid out in them, read: the one that is open, the lease keys, the
//! fencing counter, and in a cluster whose their slot is. The hash: `lock::kind`.

pub mod counter;
mod hash_slot;
pub mod lease_keys;
mod one_key;
pub mod slots;

pub use one_key::{KeyHandle, OneKey};
