//! Our clocks. Each decision reads them once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lock::{MonoUs, Now, WallUs};

/// What the clock that is never set back counts from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Whether keys may end early, as [`Now`] says.
static ENDS_EARLY: AtomicBool = AtomicBool::new(false);

/// Reads both clocks.
pub fn now() -> Now {
    let mono = START.elapsed().as_micros();
    Now {
        mono: MonoUs(i64::try_from(mono).unwrap_or(i64::MAX)),
        ..now_by_wall()
    }
}

/// The module runs from now on. `ends_early`: on a server whose keys may end early.
pub fn start(ends_early: bool) {
    LazyLock::force(&START);
    ENDS_EARLY.store(ends_early, Ordering::Relaxed);
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
        ends_early: ENDS_EARLY.load(Ordering::Relaxed),
    }
}
