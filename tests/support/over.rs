//! The end of what goes on beside a test.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped, which is also when the test fails.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
