//! A read/write lock, as Redisson's RReadWriteLock has it: beside `mode`, a field for each reader
//! and for each writer that counts its holds. Each read hold has a lease key.

use crate::lock::found::{Holder, Lease, Look, Mode};
use crate::lock::kind::hash::{count, is_owner, Hash, WRITER};
use crate::lock::types::Owner;

/// What the field `mode` of a read/write lock says in this mode.
pub fn mode_text(mode: Mode) -> &'static [u8] {
    match mode {
        Mode::Write => b"write",
        Mode::Exclusive | Mode::Read | Mode::Permits => b"read",
    }
}

/// The mode that these words stand for.
pub fn mode(value: &[u8]) -> Option<Mode> {
    let is = |mode: &Mode| mode_text(*mode) == value;
    [Mode::Read, Mode::Write].into_iter().find(is)
}

/// The field that counts a writer's holds.
pub fn writer_field(owner: &[u8]) -> Vec<u8> {
    [owner, WRITER].concat()
}

/// What is `found`, with this owner's holds.
pub fn look(hash: &impl Hash, owner: &[u8], found: Look) -> Option<Look> {
    let of = |name: &[u8]| hash.field(name, count).unwrap_or(Some(0));
    Some(Look {
        holds: of(owner)?,
        writes: of(&writer_field(owner))?,
        ..found
    })
}

/// What a field beside the `mode` of a read/write lock says, its lease left out; `None`: it is no
/// hold.
pub fn holder(field: &[u8], value: &[u8]) -> Option<Holder> {
    let holds = count(value)?;
    let (owner, mode) = match field.strip_suffix(WRITER) {
        Some(owner) => (owner, Mode::Write),
        None => (field, Mode::Read),
    };
    is_owner(owner).then(|| Holder {
        owner: Owner::from(owner),
        mode,
        holds,
        lease: Lease::Gone,
    })
}
