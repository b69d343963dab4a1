//! How many of something there are: counted on the main thread, where all callbacks run.

use std::cell::Cell;

pub(super) struct Count(Cell<u32>);

// SAFETY: this room counts in callbacks of the server and in what they call, and the
// server runs those on its main thread. (One that it may call on another, `info`, counts
// nothing there.)
unsafe impl Sync for Count {}

impl Count {
    pub const fn zero() -> Self {
        Self(Cell::new(0))
    }

    pub fn get(&self) -> u32 {
        self.0.get()
    }

    pub fn more(&self) {
        self.0.set(self.get().wrapping_add(1));
    }

    /// Once for each `more`.
    pub fn less(&self) {
        self.0.set(self.get().wrapping_sub(1));
    }
}
