//! A watched lease that ran out because the server stood still is written anew.

use crate::lock::{Decision, Key, Look, Mode, Owner, WallMs};

/// Writes it anew with the same token, for nobody can have come between. Whether it was.
pub fn revive(d: &mut Decision<'_>, key: &Key, owner: &Owner, ended: Option<WallMs>) -> bool {
    let held = d.core.locks.hold(key, owner);
    let Some(watch) = held.and_then(|hold| hold.watch.as_ref()) else {
        return false;
    };
    let at = watch.renewed_to(d.now);
    if !watch.stalled(ended, d.now) || at < d.now.wall_ms() {
        return false;
    }
    let mut modes = [Mode::Exclusive, Mode::Permits].into_iter();
    let mode = modes.find(|mode| watch.holds(*mode) > 0);
    let kind = d.kinds.in_mode(mode.unwrap_or(Mode::Read));
    kind.revive(d, key, owner, at)
}

/// How many holds of an owner in this mode are watched, or were taken beside such.
pub fn watched(d: &Decision<'_>, key: &Key, owner: &Owner, mode: Mode) -> i64 {
    let hold = d.core.locks.hold(key, owner);
    let watch = hold.and_then(|hold| hold.watch.as_ref());
    watch.map_or(0, |watch| watch.holds(mode))
}

/// When a lock ends, as it was found, of which some holds are written anew until then.
pub fn revived_until(look: &Look, at: WallMs) -> Option<WallMs> {
    if look.is_free() {
        return Some(at);
    }
    look.expires.map(|end| end.max(at))
}
