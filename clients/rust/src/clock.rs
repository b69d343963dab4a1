//! The clock by which leases are counted: it also runs while the machine is suspended, for
//! the server's clock does.

use std::time::Duration;

/// Since the machine was started.
pub type Time = Duration;

/// By that clock.
pub fn now() -> Time {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    // Elsewhere this one runs through it.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    // SAFETY: `time` is a timespec that may be written; the call keeps no pointer. It cannot
    // fail with a clock that there is, and then leaves zeros.
    unsafe { libc::clock_gettime(CLOCK, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The longest time there is: to add one to another cannot fail then. So it is what each that the
/// program gives comes in by.
pub(crate) fn at_most_far(time: Duration) -> Duration {
    /// A hundred years.
    const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);
    time.min(FAR)
}

/// Whole ms, rounded up and never 0: to the server 0 is for ever.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000))
        .unwrap_or(u64::MAX)
        .clamp(1, (1 << 53) - 1)
}
