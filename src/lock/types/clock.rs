//! Moments, a type for each clock that they are of, so that no two are mixed. The core
//! has no clock of its own: whoever calls it reads both once and passes them in, so that
//! one request sees one time. Nothing here overflows.

/// A moment by which things are due ([`Deadlines`]).
///
/// [`Deadlines`]: crate::lock::deadlines::Deadlines
pub trait Moment: Copy + Ord {
    /// No moment is later, and none comes to be this one.
    const NEVER: Self;
}

/// Of the wall clock, ms since 1970: leases and TTLs, because PEXPIREAT counts so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct WallMs(pub i64);

/// Of the wall clock, us since 1970: since when a lock is held, and tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct WallUs(pub i64);

/// Of a clock that is never set back, us since some fixed moment: what is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct MonoUs(pub i64);

/// Of the time in which the server could hear its clients, us since some moment: it stands still
/// while the server does. What a connection may be silent for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ListenedUs(pub i64);

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub wall: WallUs,
    pub mono: MonoUs,
    /// The server may delete a key as the ms begins in which it ends, not after it.
    pub ends_early: bool,
}

impl Moment for WallMs {
    const NEVER: Self = Self(i64::MAX);
}

impl Moment for MonoUs {
    const NEVER: Self = Self(i64::MAX);
}

impl ListenedUs {
    /// How many us from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    pub fn plus_us(self, us: i64) -> Self {
        Self(self.0.saturating_add(us))
    }
}

impl WallMs {
    /// How many ms from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How many ms are left at `now`; 0: it is over.
    pub fn ms_from(self, now: Self) -> i64 {
        self.since(now).max(0)
    }

    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl WallUs {
    /// The same in ms.
    pub fn ms(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// How many us from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How many ms from `earlier` to this.
    pub fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).div_euclid(1000)
    }
}

impl MonoUs {
    /// The same in ms.
    pub fn ms(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// How many us from `earlier` to this.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How many ms from `earlier` to this.
    pub fn ms_since(self, earlier: Self) -> i64 {
        self.since(earlier).div_euclid(1000)
    }

    /// How many ms are left at `now`, the last one counted whole; 0: it is over.
    pub fn ms_from(self, now: Self) -> i64 {
        self.since(now).max(0).saturating_add(999).div_euclid(1000)
    }

    pub fn plus_us(self, us: i64) -> Self {
        Self(self.0.saturating_add(us))
    }
}

/// The server reads its clock at other moments than we: once before it calls us, or as it
/// looks at a key, while a decision reads ours once. So far apart they can be.
const CLOCKS_APART_MS: i64 = 10;

impl Now {
    /// The wall clock in ms, as PEXPIREAT counts it.
    pub fn wall_ms(self) -> WallMs {
        WallMs(self.wall.0.div_euclid(1000))
    }

    /// When a lease of `lease` ms ends that begins now: never sooner than that.
    pub fn deadline(self, lease: i64) -> WallMs {
        let begun = self.ends_early && self.wall.0.rem_euclid(1000) > 0;
        let from = self.wall_ms().plus_ms(i64::from(begun));
        from.plus_ms(lease)
    }

    /// A lease that ends at this moment can be over by the server's clock.
    pub fn may_be_past(self, at: WallMs) -> bool {
        at < self.wall_ms().plus_ms(CLOCKS_APART_MS)
    }

    /// A lease that ends at this moment is over by the server's clock, too.
    pub fn must_be_past(self, at: WallMs) -> bool {
        at < self.wall_ms().plus_ms(CLOCKS_APART_MS.saturating_neg())
    }

    /// When a wait of `ms` ends that begins now.
    pub fn until(self, ms: i64) -> MonoUs {
        self.mono.plus_us(ms.saturating_mul(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lease_is_shorter_than_it_was_asked_to_be() {
        let deadline = |us, ends_early| {
            let (wall, mono) = (WallUs(us), MonoUs(0));
            let now = Now {
                wall,
                mono,
                ends_early,
            };
            now.deadline(20).0
        };
        // The key lives through the ms of its deadline, or until that begins.
        for us in [5_000, 5_001, 5_999] {
            assert_eq!(deadline(us, false), 25);
            assert!(deadline(us, true) * 1000 >= us + 20_000, "{us}");
        }
        assert_eq!((deadline(5_000, true), deadline(5_001, true)), (25, 26));
    }
}
