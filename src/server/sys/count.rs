//! How many of something there are: counted by whoever has the server to itself, as all
//! callbacks do. As a rule that is its main thread; a module that takes the server's lock in a
//! thread of its own may have one run there, and nobody else counts meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};

pub(super) struct Gauge(AtomicU32);

impl Gauge {
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

    /// One more until the guard is dropped, also by a panic.
    pub fn one(&self) -> One<'_> {
        self.more();
        One(self)
    }
}

/// One of those that are counted.
pub(super) struct One<'a>(&'a Gauge);

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.less();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_lowers_the_count_too() {
        static OPEN: Gauge = Gauge::zero();
        let result = std::panic::catch_unwind(|| {
            let _open = OPEN.one();
            assert_eq!(OPEN.get(), 1);
            panic!("in between");
        });
        assert!(result.is_err());
        assert_eq!(OPEN.get(), 0);
    }
}
