//! How an owner gets a lock: in what way it can have it, and what is written then. What of that is
//! of one kind of lock stands with the kind (`lock/kind/`).

mod admit;
mod attempt;
mod give;
mod kind;
mod plan;
mod secure;
mod token;

pub use admit::admit;
pub use attempt::{refuse, try_grant, Tried};
pub use give::give;
pub use kind::{one_more, too_many, GrantKind};
pub use plan::{carry_out, fresh, plan, Plan};
pub use secure::secure;
pub use token::{raise as raise_counter, renew_token};
