//! How a lock lies in the keyspace: Redisson's hash, and what its fields mean. Whoever
//! has hashes reads them by this: the server's keyspace, the one in memory, the tests.

use super::found::{Foreign, Hint, Holder, Kind, Lease, Look, Mode, Pool};
use super::types::{Owner, WallMs};

/// The field of a lock that several may hold: of which kind it is.
pub const MODE: &[u8] = b"mode";

/// A writer's field is its owner's id with this behind it.
const WRITER: &[u8] = b":write";

/// Of a lock with permits the field `mode` begins with this.
const PERMITS: &str = "permits ";

/// A hash that can be read.
pub trait Hash {
    /// How many fields it has, or had: some may have run out.
    fn len(&self) -> usize;
    /// Reads one field, if it is there.
    fn field<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T>;
    /// Those that are found in about so many steps, where the hash can be read in parts.
    fn some_fields(&self, steps: usize) -> Vec<(Vec<u8>, Vec<u8>)>;
    fn fields(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.some_fields(usize::MAX)
    }
}

/// So many fields are looked at before all are read: most of what is no lock shows by them.
pub const FEW_FIELDS: usize = 128;

/// What the field `mode` of a read/write lock says in this mode.
pub fn mode_text(mode: Mode) -> &'static [u8] {
    match mode {
        Mode::Write => b"write",
        Mode::Exclusive | Mode::Read | Mode::Permits => b"read",
    }
}

/// What it says of permits: `permits <asked> <limit> <out>`.
pub fn pool_text(pool: Pool) -> String {
    let Pool { asked, limit, out } = pool;
    format!("{PERMITS}{asked} {limit} {out}")
}

/// The field of an owner's permits: `permits@deadline`, ms since 1970.
pub fn permit_text(permits: i64, ends: WallMs) -> String {
    format!("{permits}@{}", ends.0)
}

/// The kind of a lock that several may hold, from its field `mode`.
fn kind_of(value: &[u8]) -> Option<Kind> {
    let is = |mode: &Mode| mode_text(*mode) == value;
    let mode = [Mode::Read, Mode::Write].into_iter().find(is);
    mode.map(Kind::ReadWrite)
        .or_else(|| pool(value).map(Kind::Permits))
}

fn pool(value: &[u8]) -> Option<Pool> {
    let rest = value.strip_prefix(PERMITS.as_bytes())?;
    let mut numbers = rest.split(|byte| *byte == b' ');
    let mut next = || whole(numbers.next()?);
    let (asked, limit, out) = (next()?, next()?, next()?);
    let is_one = |limit| (1..=Pool::MOST).contains(&limit);
    let ends = numbers.next().is_none();
    (ends && is_one(asked) && is_one(limit)).then_some(Pool { asked, limit, out })
}

/// The permits of an owner, and when its lease ends.
fn permit(value: &[u8]) -> Option<(i64, WallMs)> {
    let mut parts = value.split(|byte| *byte == b'@');
    let (permits, ends) = (parts.next()?, parts.next()?);
    let permits = count(permits).filter(|permits| *permits <= Pool::MOST)?;
    let ends = WallMs(whole(ends)?);
    parts.next().is_none().then_some((permits, ends))
}

/// The field that counts a writer's holds.
pub fn writer_field(owner: &[u8]) -> Vec<u8> {
    [owner, WRITER].concat()
}

/// Whether somebody can hold a lock by this name that several may hold: any other would be
/// taken for a field of another meaning.
fn is_owner(name: &[u8]) -> bool {
    !name.is_empty() && name != MODE && !name.ends_with(WRITER)
}

/// A number of holds: a positive integer as the server writes it. HINCRBY, by which Redisson
/// counts, takes no other.
pub fn count(value: &[u8]) -> Option<i64> {
    if !matches!(value.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let add = |number: i64, byte: &u8| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    };
    value.iter().try_fold(0, add)
}

/// The same, or 0.
pub fn whole(value: &[u8]) -> Option<i64> {
    (value == b"0").then_some(0).or_else(|| count(value))
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
        1 => look_at_one_field(hash, owner, known.holder),
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

/// A hash of one field: a plain lock, if its value is a count of holds.
fn look_at_one_field(hash: &impl Hash, owner: &[u8], holder: Option<&[u8]>) -> Option<Look> {
    let plain = |holds| Look {
        kind: Kind::Plain,
        fields: 1,
        holds,
        ..Look::FREE
    };
    let other = holder.filter(|holder| *holder != owner && *holder != MODE);
    if other.and_then(|other| hash.field(other, count)?).is_some() {
        let as_known = true;
        return Some(Look {
            as_known,
            ..plain(0)
        });
    }
    if let Some(holds) = hash.field(owner, count) {
        return holds.map(plain);
    }
    let fields = hash.fields();
    let Some((name, value)) = fields.first() else {
        // Fields can have a TTL of their own on newer servers, and this one has run out.
        return Some(Look::FREE);
    };
    match kind_of(value).filter(|_| name == MODE) {
        // Its holders are all gone.
        Some(kind) => Some(Look { kind, ..Look::FREE }),
        None => count(value).map(|_| plain(0)),
    }
}

/// A hash of several fields: a lock that several may hold, if it has a mode. Of the others
/// the owner's fields alone are looked at, for there may be many.
fn look_at_shared(hash: &impl Hash, len: usize, owner: &[u8]) -> Option<Look> {
    let found = Look {
        kind: hash.field(MODE, kind_of)??,
        fields: len.saturating_sub(1),
        ..Look::FREE
    };
    if owner.is_empty() || owner == MODE {
        return Some(found);
    }
    if matches!(found.kind, Kind::Permits(_)) {
        let Some(its) = hash.field(owner, permit) else {
            return Some(found);
        };
        let (holds, ends) = its?;
        let lease = Lease::Until(ends);
        return Some(Look {
            holds,
            lease,
            ..found
        });
    }
    let of = |name: &[u8]| hash.field(name, count).unwrap_or(Some(0));
    Some(Look {
        holds: of(owner)?,
        writes: of(&writer_field(owner))?,
        ..found
    })
}

/// What a field beside the `mode` of a lock with permits says; `None`: it is no permit.
pub fn permit_holder(field: &[u8], value: &[u8]) -> Option<Holder> {
    let (holds, ends) = permit(value).filter(|_| is_owner(field))?;
    Some(Holder {
        owner: Owner::from(field),
        mode: Mode::Permits,
        holds,
        lease: Lease::Until(ends),
    })
}

/// What a field beside the `mode` of a read/write lock says, its lease left out; `None`: it is no
/// hold.
pub fn read_write_holder(field: &[u8], value: &[u8]) -> Option<Holder> {
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

/// What such a field says of a lock of this kind.
pub fn holder_of(kind: Option<Kind>, field: &[u8], value: &[u8]) -> Option<Holder> {
    match kind {
        Some(Kind::Permits(_)) => permit_holder(field, value),
        _ => read_write_holder(field, value),
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
    let lease = expires.map_or(Lease::Endless, Lease::Until);
    let plain = fields.len() == 1 && hash.len() <= FEW_FIELDS;
    let kind = kind(hash);
    if !plain && kind.is_none() {
        return Vec::new();
    }
    let holder = |(field, value): (Vec<u8>, Vec<u8>)| {
        if plain {
            return Some(Holder {
                holds: count(&value)?,
                owner: Owner::from(&field[..]),
                mode: Mode::Exclusive,
                lease,
            });
        }
        let found = holder_of(kind, &field, &value)?;
        let own = found.mode == Mode::Permits;
        let lease = if own { found.lease } else { lease };
        Some(Holder { lease, ..found })
    };
    fields.into_iter().filter_map(holder).collect()
}
