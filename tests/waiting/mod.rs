//! Requests with BLOCK: their queue, how they are granted, and every other way in which
//! a wait ends.

mod behind_unblocked;
mod chain;
mod gone;
mod leaving;
mod limits;
mod lost_grants;
mod overwritten;
mod queue;
mod rights;
mod stale_notes;
