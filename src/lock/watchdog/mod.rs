//! Holds that are bound to connections: by WATCHDOG, which renews their lease, and by
//! NOTIFY; and who is told of their loss.

mod hints;
mod holds;
mod index;
mod lapse;
mod losses;

pub use hints::Bond;
pub use holds::{
    change_watch, let_go, let_rest, on_acquired, on_again, on_closed, on_forced, on_lost,
    on_lost_in, on_moved, on_over, on_released, on_renewed, tell, tell_some, unbind_some,
};
pub use index::{Watchdogs, ROUND_MS};
pub use lapse::{begin_anew, let_lapse};
pub use losses::{Losses, Why};
