//! The lease keys of readers: `{lock}:owner:rwlock_timeout:i`, one for each read
//! hold, a string that holds the lock's name. Redisson writes `1` instead.

use crate::lock::{Key, Lease};
use crate::server::sys::{OpenKey, Type};

/// What Redisson writes.
const REDISSON: &[u8] = b"1";

/// Until when an open lease key keeps a reader of the lock.
///
/// Of the value only the length is looked at: to read it the server would have to
/// copy it, and nobody is refused a lease key by this look.
pub fn lease(open: &OpenKey<'_>, lock: &Key) -> Lease {
    if !could_be_of(open, lock) {
        return Lease::Gone;
    }
    Lease::of(open.expires())
}

fn could_be_of(open: &OpenKey<'_>, lock: &Key) -> bool {
    open.is(Type::String) && [lock.name.len(), REDISSON.len()].contains(&open.len())
}

/// Whether an open key is a lease key of this lock. The key must be open for writing:
/// the server may store it in another way to show its value.
pub fn is_of(open: &OpenKey<'_>, lock: &Key) -> bool {
    let names = |value: &[u8]| *value == *lock.name || value == REDISSON;
    could_be_of(open, lock) && open.string(names) == Some(true)
}
