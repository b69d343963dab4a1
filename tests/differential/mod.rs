//! Two servers that are to be taken for one another: on one the module's commands,
//! on the other the functions of the same names. Random steps are taken on both, and
//! after each the replies, the messages and all keys with their TTLs are equal.
//!
//! What may differ is said where it is allowed: in `replies` for what is answered,
//! in `snapshot` and `pools` for what is stored, in `messages` for what is published. `memory` says
//! which locks are kept out of it.

mod foreign;
mod generate;
mod memory;
mod messages;
mod pair;
mod pools;
mod replies;
mod run;
mod scene;
mod side;
mod snapshot;
mod state;
mod step;
mod tokens;

pub use run::{agree, differ, Length};
pub use side::{library, Language};
pub use step::{words, Step};
