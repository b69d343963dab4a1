//! Watchdog holds: which connection they belong to, when their lease is renewed, and
//! who is told of their loss.

mod holds;
mod index;
mod lapse;
mod lapsed;

pub use holds::{
    on_acquired, on_all_released, on_closed, on_lost, on_lost_in, on_lost_with, on_moved,
    on_one_released, on_renewed, reschedule,
};
pub use index::{Bond, Watchdogs, ROUND_MS};
pub use lapse::{begin_anew, let_lapse};
