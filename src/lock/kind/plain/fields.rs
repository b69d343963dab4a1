//! A plain lock: a hash of one field, its owner's id, which counts the owner's holds, as
//! Redisson's RLock has it. It ends with the hash.

use crate::lock::found::{Holder, Kind, Lease, Look, Mode};
use crate::lock::kind::hash::{count, Hash, MODE};
use crate::lock::types::Owner;

/// A hash of one field: a plain lock, if its value is a count of holds; or what has no other
/// field than `mode`, which says of which kind it is (`kind_of`).
pub fn look(
    hash: &impl Hash,
    owner: &[u8],
    holder: Option<&[u8]>,
    kind_of: impl FnOnce(&[u8]) -> Option<Kind>,
) -> Option<Look> {
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

/// What its field says: all holds have this lease, that of the hash.
pub fn holder(field: &[u8], value: &[u8], lease: Lease) -> Option<Holder> {
    Some(Holder {
        holds: count(value)?,
        owner: Owner::from(field),
        mode: Mode::Exclusive,
        lease,
    })
}
