//! A lock with permits: `mode` counts those that are out, and each owner has a field with its
//! permits and its own lease.

use crate::lock::found::{Holder, Lease, Look, Mode, Pool};
use crate::lock::kind::hash::{count, is_owner, whole, Hash};
use crate::lock::types::{Owner, WallMs};

/// The field `mode` begins with this.
const PERMITS: &str = "permits ";

/// What it says of permits: `permits <asked> <limit> <out>`.
pub fn pool_text(pool: Pool) -> String {
    let Pool { asked, limit, out } = pool;
    format!("{PERMITS}{asked} {limit} {out}")
}

/// The field of an owner's permits: `permits@deadline`, ms since 1970.
pub fn permit_text(permits: i64, ends: WallMs) -> String {
    format!("{permits}@{}", ends.0)
}

pub fn pool(value: &[u8]) -> Option<Pool> {
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

/// What is `found`, with this owner's permits.
pub fn look(hash: &impl Hash, owner: &[u8], found: Look) -> Option<Look> {
    let Some(its) = hash.field(owner, permit) else {
        return Some(found);
    };
    let (holds, ends) = its?;
    let lease = Lease::Until(ends);
    Some(Look {
        holds,
        lease,
        ..found
    })
}

/// What a field beside the `mode` of a lock with permits says; `None`: it is no permit.
pub fn holder(field: &[u8], value: &[u8]) -> Option<Holder> {
    let (holds, ends) = permit(value).filter(|_| is_owner(field))?;
    Some(Holder {
        owner: Owner::from(field),
        mode: Mode::Permits,
        holds,
        lease: Lease::Until(ends),
    })
}
