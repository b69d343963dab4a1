//! One clock for all processes of the machine.

/// Microseconds of the monotonic clock.
pub fn now_us() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Milliseconds since 1970, by which leases run.
pub fn wall_ms() -> u64 {
    read(libc::CLOCK_REALTIME) / 1000
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local that lives through the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}
