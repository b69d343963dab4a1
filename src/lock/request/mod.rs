//! What clients ask for.

mod acquire;
mod end_holds;
mod force;
mod many;
mod meant;
mod release;
mod renew;
mod short;

pub use end_holds::end_holds;
pub use force::force;
pub use many::{acquire_many, release_many, renew_many, MOST_KEYS};
pub use renew::renew;
pub use short::{acquire, give_up_only_held, release, take_free};
