//! Holds of an owner end: by its will, with its connection, by silence, or as a reply is lost.

use crate::lock::{Decision, Key, Look, Mode, Owner};

/// So many holds of an owner end in each of these modes, as far as it has
/// them; the lock goes on if it was the last one.
pub fn end_holds(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &Owner,
    look: Look,
    ending: &[(Mode, i64)],
) {
    if let Some(kind) = d.kinds.of(&look) {
        kind.end(d, key, owner, look, ending);
    }
}
