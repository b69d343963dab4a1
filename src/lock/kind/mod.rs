//! The kinds of locks. A kind is a folder here: how it lies in the keyspace (`fields.rs`), and all
//! that it does otherwise than the others ([`LockKind`]). What a fourth one needs beside its folder
//! stands in docs/architecture.md, step by step.
//!
//! This file chooses by what is in a hash, Redisson's, and says what its fields mean. Whoever has
//! hashes reads them by it: the server's keyspace, the one in memory, the tests.

pub mod all;
mod hash;
pub mod holders;
pub mod lock_kind;
pub mod permits;
pub mod plain;
pub mod read_write;

#[cfg(test)]
pub use hash::count;
pub use hash::{whole, Hash, FEW_FIELDS, MODE};
#[cfg(test)]
pub use permits::fields::holder as permit_holder;
pub use permits::fields::{permit_text, pool_text};
pub use read_write::fields::{mode_text, writer_field};

use permits::fields as permits_fields;
use plain::fields as plain_fields;
use read_write::fields as read_write_fields;

use super::found::{Foreign, Hint, Holder, Kind, Lease, Look, Mode};
use super::notice::WakeTarget;
use super::types::WallMs;

/// The kind of a lock that several may hold, from its field `mode`.
fn kind_of(value: &[u8]) -> Option<Kind> {
    let mode = read_write_fields::mode(value).map(Kind::ReadWrite);
    mode.or_else(|| permits_fields::pool(value).map(Kind::Permits))
}

/// A hash as one owner sees it, without any lease key.
pub fn look(hash: &impl Hash, owner: &[u8], expires: Option<WallMs>) -> Look {
    look_with_hint(hash, owner, Hint::default(), || expires)
}

/// The same, where something is known of the plain lock. `expires`: asks when it ends.
pub fn look_with_hint(
    hash: &impl Hash,
    owner: &[u8],
    known: Hint<'_>,
    expires: impl FnOnce() -> Option<WallMs>,
) -> Look {
    let found = match hash.len() {
        1 => plain_fields::look(hash, owner, known.holder, kind_of),
        len => look_at_shared(hash, len, owner),
    };
    let kind = Kind::Foreign(Foreign::OtherHash);
    let found = found.unwrap_or(Look { kind, ..Look::FREE });
    let holds = found.kind == Kind::Plain && found.holds > 0;
    let expires = match found.kind {
        Kind::Free => return found,
        _ => known.end.filter(|_| holds).or_else(expires),
    };
    Look { expires, ..found }
}

/// A hash of several fields: a lock that several may hold, if it has a mode. Of the others
/// the owner's fields alone are looked at, for there may be many.
fn look_at_shared(hash: &impl Hash, len: usize, owner: &[u8]) -> Option<Look> {
    let found = Look {
        kind: hash.field(MODE, kind_of)??,
        fields: len.saturating_sub(1),
        ..Look::FREE
    };
    match found.kind {
        _ if owner.is_empty() || owner == MODE => Some(found),
        Kind::Permits(_) => permits_fields::look(hash, owner, found),
        Kind::ReadWrite(_) => read_write_fields::look(hash, owner, found),
        Kind::Free | Kind::Plain | Kind::Foreign(_) => None,
    }
}

/// What a field beside `mode` says of a lock of this kind, of readers without their lease;
/// `None`: it is no hold.
pub fn holder_of(kind: Option<Kind>, field: &[u8], value: &[u8]) -> Option<Holder> {
    match kind {
        Some(Kind::Permits(_)) => permits_fields::holder(field, value),
        _ => read_write_fields::holder(field, value),
    }
}

/// As which of these kinds the fields of a hash are read.
pub fn kind(hash: &impl Hash) -> Option<Kind> {
    hash.field(MODE, kind_of).flatten()
}

/// Whether this field is there, and is no hold.
pub fn is_wrong(hash: &impl Hash, field: &[u8]) -> bool {
    let kind = kind(hash);
    let is_wrong = |value: &[u8]| holder_of(kind, field, value).is_none();
    hash.field(field, is_wrong).unwrap_or(false)
}

/// The fields that stand for holds, of all or of those that are found in so many steps; of
/// readers with the lease of the hash, for each has one of its own. None if one of the first
/// is no hold.
pub fn holders(hash: &impl Hash, expires: Option<WallMs>, steps: usize) -> Vec<Holder> {
    if hash.len() > FEW_FIELDS && steps > FEW_FIELDS {
        let few = hash.some_fields(FEW_FIELDS);
        let others = few.iter().filter(|(name, _)| name != MODE).count();
        if holders_by(hash, few, expires).len() < others {
            return Vec::new();
        }
    }
    holders_by(hash, hash.some_fields(steps), expires)
}

/// The holds that these fields of the hash stand for.
fn holders_by(
    hash: &impl Hash,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    expires: Option<WallMs>,
) -> Vec<Holder> {
    let lease = Lease::of(expires);
    let plain = fields.len() == 1 && hash.len() <= FEW_FIELDS;
    let kind = kind(hash);
    if !plain && kind.is_none() {
        return Vec::new();
    }
    let holder = |(field, value): (Vec<u8>, Vec<u8>)| {
        if plain {
            return plain_fields::holder(&field, &value, lease);
        }
        let found = holder_of(kind, &field, &value)?;
        let has_its_own = found.lease != Lease::Gone;
        let lease = if has_its_own { found.lease } else { lease };
        Some(Holder { lease, ..found })
    };
    fields.into_iter().filter_map(holder).collect()
}

/// In which modes the owner that looked holds the lock, how often and until when, whoever
/// excludes most first. `left_over`: somebody made a read/write lock of a plain one that it
/// holds.
pub fn holds(look: &Look, left_over: bool) -> impl Iterator<Item = (Mode, i64, Lease)> + use<> {
    let of_hash = Lease::of(look.expires);
    let mut all = [
        (Mode::Write, look.writes, of_hash),
        (Mode::Exclusive, look.holds, of_hash),
    ];
    let [writes, others] = &mut all;
    match look.kind {
        Kind::ReadWrite(_) if !left_over => (others.0, others.2) = (Mode::Read, look.lease),
        Kind::Permits(_) => (others.0, others.2) = (Mode::Permits, look.lease),
        Kind::Plain | Kind::ReadWrite(_) => {}
        Kind::Free | Kind::Foreign(_) => (writes.1, others.1) = (0, 0),
    }
    let is_held = |(_, holds, lease): &(Mode, i64, Lease)| *holds > 0 && *lease != Lease::Gone;
    all.into_iter().filter(is_held)
}

/// The lease of an owner's holds, in whatever mode it has them.
pub fn own_lease(look: &Look) -> Lease {
    match look.kind {
        Kind::ReadWrite(_) if look.writes == 0 => look.lease,
        Kind::Permits(_) => look.lease,
        Kind::Plain | Kind::ReadWrite(_) => Lease::of(look.expires),
        Kind::Free | Kind::Foreign(_) => Lease::Gone,
    }
}

/// What could be a lock, of which nobody has asked for anything yet: whom its end wakes, and when
/// that is; `None`: this is no lock, or has no end.
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
