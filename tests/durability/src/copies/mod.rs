//! A master under load, its replicas and AOFs: whatever is done to them, when all have
//! come to rest they have the same keys.

mod acts;
mod compare;
mod dump;
mod round;
mod set;

pub use round::{run, Done};
