//! Our clocks. Each decision reads them once.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lock::{MonoUs, Now, WallUs};

/// What the clock that is never set back counts from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Reads both clocks.
pub fn now() -> Now {
    let mono = START.elapsed().as_micros();
    Now {
        mono: MonoUs(i64::try_from(mono).unwrap_or(i64::MAX)),
        ..now_by_wall()
    }
}

/// The module runs from now on.
pub fn start() {
    LazyLock::force(&START);
}

/// For how many ms the module runs.
pub fn age_ms() -> i64 {
    i64::try_from(START.elapsed().as_millis()).unwrap_or(i64::MAX)
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
