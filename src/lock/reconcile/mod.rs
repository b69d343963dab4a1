//! What was known of a key is brought in line with what it is.
//!
//! The keyspace is the only truth about who holds a lock. Whoever needs to know looks
//! ([`read`]): what is found is compared with what was known ([`diff`]), what differs is
//! applied in one place ([`apply`]), and it is looked again. An event of a key is a hint:
//! it makes us look, and says why a key that is gone went ([`due`]).

mod apply;
mod cause;
mod diff;
mod due;
mod holder;
mod merge;
mod over;
mod parts;
mod pool;
mod reader;
mod readers;
mod revive;

pub use apply::{expire_reader, others, stop_reading, sweep};
pub use cause::Cause;
pub use diff::{is_left_over, judge, why_no_lock};
pub use due::{attend, differs, end_leases, expire, read, read_on, read_to_release};
pub use holder::know_holder;
pub use over::{drop_holders, end_first, end_many, end_some};
pub use pool::{forget as forget_permits, give_back, see};
pub use reader::shorten;
pub use readers::keeps_readers_out;
