//! When the lease of an owner ends that holds a lock.

use crate::lock::{Decision, Key, Look, Owner, WallMs};

/// Sets it, in every mode in which it holds the lock.
pub fn set_lease(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, at: WallMs) {
    if let Some(kind) = d.kinds.of(look) {
        kind.set_lease(d, key, owner, look, at);
    }
}

/// Sets the end of a lock that ends for all who hold it.
pub fn set_end(d: &mut Decision<'_>, key: &Key, look: &Look, at: WallMs) {
    d.expire_at(key, None, Some(at));
    know_end(d, key, look, Some(at));
}

/// It is known when the key ends. Others may be in a read/write lock by now, with
/// leases of their own.
pub fn know_end(d: &mut Decision<'_>, key: &Key, look: &Look, at: Option<WallMs>) {
    let locks = &mut d.core.locks;
    if look.kind.is_for_several() {
        locks.change_shared(key, |shared| shared.expires = at);
    } else {
        locks.set_deadline(key, at);
    }
}
