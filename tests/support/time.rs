//! The servers' clock, which is this machine's.

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{eventually, Version};

/// µs since 1970.
pub fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("now");
    i64::try_from(now.as_micros()).expect("before the year 294247")
}

/// ms since 1970.
pub fn now_ms() -> i64 {
    now_us() / 1000
}

/// Waits until the clock shows more than this.
#[track_caller]
pub fn pass(at: i64) {
    eventually("time passes", || now_ms() > at);
}

/// Does something, and gives when a lease of `ms` that begins meanwhile ends.
pub fn lease_from<T>(ms: i64, action: impl FnOnce() -> T) -> (T, RangeInclusive<i64>) {
    let before = now_ms();
    let result = action();
    (result, ends_from(before, ms))
}

/// When a lease of `ms` ends that has begun since then.
pub fn ends_from(before: i64, ms: i64) -> RangeInclusive<i64> {
    before + ms..=now_ms() + longest(ms)
}

/// What is left of a lease of `ms` at most, as PTTL counts. Redis 8 may delete a key as the ms of
/// its end begins, so there it counts from the next ms.
pub fn longest(ms: i64) -> i64 {
    ms + i64::from(*ENDS_EARLY)
}

static ENDS_EARLY: LazyLock<bool> = LazyLock::new(|| {
    let version = Version::installed();
    !version.is_valkey() && version.at_least(7, 4)
});
