//! What was known of a key is brought in line with what it is.
//!
//! The keyspace is the only truth about who holds a lock. Whoever needs to know looks
//! ([`read`]): what is found is compared with what was known ([`diff`]), what differs is
//! applied in one place ([`apply`]), and it is looked again. An event of a key is a hint:
//! it makes us look, and says why a key that is gone went ([`due`]).

mod apply;
mod cause;
mod change;
mod diff;
mod due;
mod holder;
mod judge;
mod over;
mod parts;
mod revive;

pub use apply::bring_in_line;
pub use cause::{Cause, Over};
pub use change::Change;
pub use due::{attend, differs, end_leases, expire, read, read_on, read_to_release};
pub use holder::know_holder;
pub use judge::{judge, why_no_lock};
pub use over::{drop_holders, end, end_first, end_many, end_some, hold_ended};
pub use parts::{are_many, read_parts, Parts};
pub use revive::{revive, revived_until, watched};
