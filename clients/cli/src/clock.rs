//! The clock of leases: it runs while the machine is suspended too.

use std::time::Duration;

pub fn now() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` may be written; the call keeps no pointer.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
