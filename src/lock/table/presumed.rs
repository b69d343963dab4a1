//! What could be a lock, of which nobody has asked for anything yet: a pure function.

use crate::lock::{Kind, Look, Mode, WakeTarget, WallMs};

/// Whom the end of a lock wakes that could be here, and when it ends; `None`: this is no
/// lock, or has no end.
pub fn presumption(look: &Look) -> Option<(WakeTarget, WallMs)> {
    let whom = match look.kind {
        Kind::Plain => WakeTarget::One,
        Kind::ReadWrite(Mode::Write) if look.fields > 0 => WakeTarget::AllShared,
        Kind::ReadWrite(_) if look.fields > 0 => WakeTarget::OneShared,
        // No application's own hash looks like a lock with permits: that is known, not presumed.
        Kind::Free | Kind::ReadWrite(_) | Kind::Permits(_) | Kind::Foreign(_) => return None,
    };
    Some((whom, look.expires?))
}
