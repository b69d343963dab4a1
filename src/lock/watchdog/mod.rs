//! Watchdog holds: which connection they belong to, when their lease is renewed, and
//! who is told of their loss.

mod holds;
mod index;
mod lapse;

pub use holds::{
    change_watch, close, on_acquired, on_closed, on_lost, on_lost_in, on_lost_with, on_moved,
    on_renewed,
};
pub use index::{Bond, Watchdogs, ROUND_MS};
pub use lapse::{begin_anew, let_lapse};
