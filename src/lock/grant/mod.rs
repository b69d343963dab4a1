//! How an owner gets a lock: in what way it can have it, and what is written then.

mod admit;
mod attempt;
mod give;
mod kind;
mod permits;
mod plan;
mod secure;
mod shared;
mod token;

pub use admit::admit;
pub use attempt::{refuse, try_grant, Tried};
pub use give::give;
pub use kind::GrantKind;
pub use permits::admit as admit_to_permits;
pub use plan::{carry_out, fresh, plan, Plan};
pub use token::raise as raise_counter;
