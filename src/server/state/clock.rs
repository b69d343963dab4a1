//! Our clocks. Each decision reads them once.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lock::Now;
use crate::server::sys::{MonoUs, WallMs};

/// Counts from the load of the module.
pub struct Clock {
    start: Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Reads both clocks.
    pub fn now(&self) -> Now {
        Now {
            mono_us: self.mono().0,
            ..Self::now_by_wall()
        }
    }

    pub fn mono(&self) -> MonoUs {
        MonoUs(i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// Reads the wall clock alone, for a request that neither waits nor finds anybody
    /// waiting: reading clocks is a good part of what it costs.
    pub fn now_by_wall() -> Now {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            wall_us: i64::try_from(wall.as_micros()).unwrap_or(i64::MAX),
            mono_us: 0,
        }
    }
}

/// The moments of a reading of the core's.
pub fn moments(now: Now) -> (MonoUs, WallMs) {
    (MonoUs(now.mono_us), WallMs(now.wall_ms()))
}
