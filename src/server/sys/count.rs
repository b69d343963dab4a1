//! How many of something there are: counted on the main thread, where all callbacks run.

use std::sync::atomic::{AtomicU32, Ordering};

pub(super) struct Count(AtomicU32);

impl Count {
    pub const fn zero() -> Self {
        Self(AtomicU32::new(0))
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Not one atomic step, which would cost more: only one thread counts.
    pub fn more(&self) {
        self.0.store(self.get().wrapping_add(1), Ordering::Relaxed);
    }

    /// Once for each `more`.
    pub fn less(&self) {
        self.0.store(self.get().wrapping_sub(1), Ordering::Relaxed);
    }
}
