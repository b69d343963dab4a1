//! Our clocks. Each decision reads them once.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lock::{MonoUs, Now, WallUs};

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
            mono: self.mono(),
            ..Self::now_by_wall()
        }
    }

    fn mono(&self) -> MonoUs {
        MonoUs(i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// Reads the wall clock alone, for a request that neither waits nor finds anybody
    /// waiting: reading clocks is a good part of what it costs.
    pub fn now_by_wall() -> Now {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            wall: WallUs(i64::try_from(wall.as_micros()).unwrap_or(i64::MAX)),
            mono: MonoUs(0),
        }
    }
}
