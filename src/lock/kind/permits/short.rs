//! Whether a waiter need not be tried: most behind a grant of permits wait on.

use super::give::can_have;
use crate::lock::{Decision, Key, Mode, WaiterId};

/// Permits were granted in this decision, and fewer are left than this one waits for: so a try
/// would find, and have nothing else to do.
pub fn is_short(d: &Decision<'_>, key: &Key, id: WaiterId) -> bool {
    let (Some(shared), Some(waiter)) = (d.core.locks.shared(key), d.core.queues.get(id)) else {
        return false;
    };
    let want = &waiter.want;
    let none_left = |pool| matches!(can_have(d.core, key, want.share, pool), Ok(None));
    want.mode == Mode::Permits
        && shared.pool().is_some_and(none_left)
        && shared.hold(&want.owner).is_none()
        && !waiter.is_late(d.now)
        && !d.core.heard.is_closed(want.client)
}
