//! The settings, `rlock.*` in redis.conf and CONFIG SET.

use std::sync::atomic::{AtomicBool, Ordering};

/// `rlock.redisson-compat yes|no` (default yes): publish the message that wakes
/// Redisson's waiters when a lock is left free.
pub static REDISSON_COMPAT: AtomicBool = AtomicBool::new(true);

pub fn redisson_compat() -> bool {
    REDISSON_COMPAT.load(Ordering::Relaxed)
}
