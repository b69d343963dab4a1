//! One clock for all threads.

use std::thread::sleep;
use std::time::Duration;

/// Microseconds of the monotonic clock.
pub fn now_us() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local that lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

pub fn pause(ms: u64) {
    sleep(Duration::from_millis(ms));
}

/// Until it is so late; at once if it is later.
pub fn pause_until(us: u64) {
    sleep(Duration::from_micros(us.saturating_sub(now_us())));
}

/// Whether this came true before so many ms were over.
pub fn within(ms: u64, mut done: impl FnMut() -> bool) -> bool {
    let end = now_us() + ms * 1000;
    while !done() {
        if now_us() > end {
            return false;
        }
        pause(10);
    }
    true
}
