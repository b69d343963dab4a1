//! Our clocks. Each decision reads them once.

use crate::lock::{MonoUs, Now, WallUs};
use crate::server::sys;

/// Reads both clocks.
pub fn now() -> Now {
    Now {
        mono: MonoUs(sys::mono_us()),
        ..now_by_wall()
    }
}

/// Reads the wall clock alone, for a request that neither waits nor finds anybody
/// waiting: reading clocks is a good part of what it costs.
pub fn now_by_wall() -> Now {
    Now {
        wall: WallUs(sys::wall_us()),
        mono: MonoUs(0),
    }
}
