//! Moments, a type for each clock that they are of, so that no two are mixed; and a clock
//! of the system that the standard library does not have.

/// Of the wall clock, ms since 1970: leases and TTLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallMs(pub i64);

impl WallMs {
    /// How many ms from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Of the clock that is never set back, us since the module was loaded: what is waited
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonoUs(pub i64);

impl MonoUs {
    /// How many us from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole ms from `now` to this; 0: it is over.
    pub fn ms_from(self, now: Self) -> i64 {
        self.since(now).max(0).saturating_add(999).div_euclid(1000)
    }

    pub fn plus_us(self, us: i64) -> Self {
        Self(self.0.saturating_add(us))
    }
}

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
