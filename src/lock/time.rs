//! The two clocks of a request. The core has no clock of its own: whoever calls
//! it reads both once and passes them in, so that one request sees one time.

/// One reading of both clocks, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since 1970, by the server's wall clock: leases and tokens run by it,
    /// because PEXPIREAT does.
    pub wall_us: i64,
    /// Since some fixed moment, never set back: BLOCK time-outs run by it.
    pub mono_us: i64,
}

impl Now {
    /// The wall clock in ms, as PEXPIREAT counts it.
    pub fn wall_ms(self) -> i64 {
        self.wall_us.div_euclid(1000)
    }

    /// The wall-clock moment, in ms, at which a lease of `lease` ms ends that
    /// begins now.
    pub fn deadline(self, lease: i64) -> i64 {
        self.wall_ms().saturating_add(lease)
    }

    /// The monotonic moment, in us, at which a wait of `ms` ends that begins now.
    pub fn until(self, ms: i64) -> i64 {
        self.mono_us.saturating_add(ms.saturating_mul(1000))
    }
}
