//! A clock of the system that the standard library does not have.

/// How long the machine runs, us: no step of the wall clock changes it, and it counts
/// the time for which the machine was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineUs(pub i64);

impl MachineUs {
    pub fn now() -> Self {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: it writes to the structure and no more.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
        let us = time.tv_nsec / 1000;
        Self(time.tv_sec.saturating_mul(1_000_000).saturating_add(us))
    }

    /// How many us from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}
