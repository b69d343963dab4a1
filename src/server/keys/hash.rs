//! What the fields of a lock's hash mean: counts of holds, the mode.

use crate::lock::Mode;
use crate::server::sys::Text;

/// The field of a read/write lock that says which it is.
pub const MODE: &[u8] = b"mode";

/// A writer's field is its owner's id with this behind it.
pub const WRITER: &[u8] = b":write";

/// The mode of a read/write lock, from its field `mode`.
pub fn mode_of(value: &[u8]) -> Option<Mode> {
    match value {
        b"read" => Some(Mode::Read),
        b"write" => Some(Mode::Write),
        _ => None,
    }
}

/// Whether somebody can hold a read/write lock by this name: any other would be
/// taken for a field of another meaning.
pub fn is_owner(name: &[u8]) -> bool {
    !name.is_empty() && name != MODE && !name.ends_with(WRITER)
}

/// A number of holds: a positive integer as the server writes it. HINCRBY, which
/// replicas get, takes no other.
pub fn count(value: &[u8]) -> Option<i64> {
    if !matches!(value.first(), Some(b'1'..=b'9')) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What a field counts: 0 if there is none. `None`: it is no count.
pub fn counted(value: Option<Text<'_>>) -> Option<i64> {
    value.map_or(Some(0), |value| count(value.bytes()))
}
