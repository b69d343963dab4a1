//! The clocks of the system, read without more than that: the standard library lacks one of
//! them.

/// How long the machine runs, us: no step of the wall clock changes it, and it counts
/// the time for which the machine was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineUs(pub i64);

impl MachineUs {
    pub fn now() -> Self {
        Self(read_us(libc::CLOCK_BOOTTIME))
    }

    /// How many us from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The time of day, us since 1970.
pub fn wall_us() -> i64 {
    read_us(libc::CLOCK_REALTIME)
}

/// A clock that is never set back, us since some fixed moment.
pub fn mono_us() -> i64 {
    read_us(libc::CLOCK_MONOTONIC)
}

fn read_us(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes to the structure and no more.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let us = time.tv_nsec / 1000;
    time.tv_sec.saturating_mul(1_000_000).saturating_add(us)
}
