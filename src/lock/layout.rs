//! How a lock lies in the keyspace: Redisson's hash, and what its fields mean. Whoever
//! has hashes reads them by this: the server's keyspace, the one in memory, the tests.

use super::found::{Foreign, Holder, Kind, Lease, Look, Mode};
use super::types::{Owner, WallMs};

/// The field of a read/write lock that says which it is.
pub const MODE: &[u8] = b"mode";

/// A writer's field is its owner's id with this behind it.
const WRITER: &[u8] = b":write";

/// A hash that can be read.
pub trait Hash {
    /// How many fields it has, or had: some may have run out.
    fn len(&self) -> usize;
    /// Reads one field, if it is there.
    fn field<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T>;
    fn fields(&self) -> Vec<(Vec<u8>, Vec<u8>)>;
}

/// What the field `mode` says in this mode.
pub fn mode_text(mode: Mode) -> &'static [u8] {
    match mode {
        Mode::Write => b"write",
        Mode::Exclusive | Mode::Read => b"read",
    }
}

/// The mode of a read/write lock, from its field `mode`.
fn mode_of(value: &[u8]) -> Option<Mode> {
    [Mode::Read, Mode::Write]
        .into_iter()
        .find(|mode| mode_text(*mode) == value)
}

/// The field that counts a writer's holds.
pub fn writer_field(owner: &[u8]) -> Vec<u8> {
    [owner, WRITER].concat()
}

/// Whether somebody can hold a read/write lock by this name: any other would be taken
/// for a field of another meaning.
fn is_owner(name: &[u8]) -> bool {
    !name.is_empty() && name != MODE && !name.ends_with(WRITER)
}

/// A number of holds: a positive integer as the server writes it. HINCRBY, which replicas
/// get, takes no other.
pub fn count(value: &[u8]) -> Option<i64> {
    if !matches!(value.first(), Some(b'1'..=b'9')) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A hash as one owner sees it, without any lease key.
pub fn look(hash: &impl Hash, owner: &[u8], expires: Option<WallMs>) -> Look {
    let found = match hash.len() {
        1 => look_at_plain(hash, owner),
        len => look_at_shared(hash, len, owner),
    };
    let kind = Kind::Foreign(Foreign::OtherHash);
    let found = found.unwrap_or(Look { kind, ..Look::FREE });
    if found.kind == Kind::Free {
        return found;
    }
    Look { expires, ..found }
}

/// A hash of one field: a plain lock, if its value is a count of holds.
fn look_at_plain(hash: &impl Hash, owner: &[u8]) -> Option<Look> {
    let plain = |holds| Look {
        kind: Kind::Plain,
        fields: 1,
        holds,
        ..Look::FREE
    };
    if let Some(holds) = hash.field(owner, count) {
        return holds.map(plain);
    }
    let fields = hash.fields();
    let Some((name, value)) = fields.first() else {
        // Fields can have a TTL of their own on newer servers, and this one has run out.
        return Some(Look::FREE);
    };
    let mode = mode_of(value).filter(|_| name == MODE);
    match mode {
        // A read/write lock whose holders are all gone.
        Some(mode) => Some(Look {
            kind: Kind::ReadWrite(mode),
            ..Look::FREE
        }),
        None => count(value).map(|_| plain(0)),
    }
}

/// A hash of several fields: a read/write lock, if it has a mode. Of the others the
/// owner's fields alone are looked at, for there may be many.
fn look_at_shared(hash: &impl Hash, len: usize, owner: &[u8]) -> Option<Look> {
    let mode = hash.field(MODE, mode_of)??;
    let of = |name: &[u8]| hash.field(name, count).unwrap_or(Some(0));
    let (holds, writes) = if owner.is_empty() || owner == MODE {
        (0, 0)
    } else {
        (of(owner)?, of(&writer_field(owner))?)
    };
    Some(Look {
        kind: Kind::ReadWrite(mode),
        fields: len.saturating_sub(1),
        holds,
        writes,
        ..Look::FREE
    })
}

/// All fields that stand for holds; those of readers with the lease of the hash, for each
/// has one of its own.
pub fn holders(hash: &impl Hash, expires: Option<WallMs>) -> Vec<Holder> {
    let lease = expires.map_or(Lease::Endless, Lease::Until);
    let fields = hash.fields();
    let plain = fields.len() == 1;
    let is_mode = |(name, value): &(Vec<u8>, Vec<u8>)| name == MODE && mode_of(value).is_some();
    if !plain && !fields.iter().any(is_mode) {
        return Vec::new();
    }
    let holder = |(field, value): (Vec<u8>, Vec<u8>)| {
        let holds = count(&value)?;
        let (owner, mode) = match field.strip_suffix(WRITER) {
            _ if plain => (&field[..], Mode::Exclusive),
            Some(owner) => (owner, Mode::Write),
            None => (&field[..], Mode::Read),
        };
        let is_its = mode == Mode::Exclusive || is_owner(owner);
        is_its.then(|| Holder {
            owner: Owner::from(owner),
            mode,
            holds,
            lease,
        })
    };
    fields.into_iter().filter_map(holder).collect()
}
